//! The HTTP client.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

/// A client for tools. It follows no redirects: a redirect could send credentials to another host, and repeating a `POST`
/// would repeat its effect. It has no total timeout, because the worker drops an attempt at its deadline.
pub(crate) fn build(connect_timeout: Duration) -> Result<Client, reqwest::Error> {
    // reqwest is built without a TLS provider. If another crate installed one already, that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(Policy::none())
        .user_agent(concat!("redial/", env!("CARGO_PKG_VERSION")))
        .build()
}
