//! The HTTP client.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

/// A client for tools. It follows no redirects: one could lead credentials to another host, and a repeated `POST` is a
/// doubled effect. There is no total timeout: whoever runs an attempt drops it at its deadline.
pub(crate) fn build(connect_timeout: Duration) -> Result<Client, reqwest::Error> {
    // reqwest is built without a provider of its own; whoever installed one first is right.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(Policy::none())
        .user_agent(concat!("redial/", env!("CARGO_PKG_VERSION")))
        .build()
}
