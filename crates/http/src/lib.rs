//! The one place that builds HTTP clients, and decides which requests go through the proxy of the environment:
//!
//! | request | goes |
//! | --- | --- |
//! | to this machine | to its service: a proxy elsewhere would be given what was to stay here |
//! | with a secret over `http://` | to its service: a proxy would read the secret |
//! | other `http://` | through the proxy of `HTTP_PROXY`, else of `ALL_PROXY`, unless `NO_PROXY` names the host |
//! | other `https://` | through a tunnel of the proxy of `HTTPS_PROXY`, else of `ALL_PROXY`, unless `NO_PROXY` names the host |

mod proxies;
mod route;

use std::{sync::Arc, time::Duration};

use reqwest::{Client, ClientBuilder, Url, blocking, redirect::Policy};

use self::{proxies::Proxies, route::Way};
pub use self::{proxies::is_loopback, route::Route};

const USER_AGENT: &str = concat!("redial/", env!("CARGO_PKG_VERSION"));

/// Makes *ring* the TLS provider of this process. Calling it again does nothing. What builds a client here does it, because
/// reqwest is built without a provider and panics if there is none.
pub fn install_crypto() {
    // An error means that a provider is installed already, which is enough.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds a client that uses no proxy. It follows no redirects: a redirect could send credentials to another host, and
/// repeating a `POST` would repeat its effect.
pub fn direct() -> ClientBuilder {
    install_crypto();
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    Client::builder().no_proxy().redirect(Policy::none()).user_agent(USER_AGENT)
}

/// Builds a blocking client for one address; `None` is this machine. It has its own runtime, so it must not be built
/// within one. The second value is the variable that names the proxy, if requests go through one.
pub fn blocking(
    url: Option<&Url>,
    has_secret: bool,
    timeout: Duration,
    variable: impl Fn(&str) -> Option<String>,
) -> reqwest::Result<(blocking::Client, Option<&'static str>)> {
    install_crypto();
    let proxies = Proxies::read(variable);
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    let client = blocking::Client::builder().no_proxy().timeout(timeout);
    match url.map_or(Way::Direct, |url| proxies.way(url, has_secret)) {
        Way::Through(variable) | Way::Tunnel(variable) => {
            let client = proxies.list()?.into_iter().fold(client, blocking::ClientBuilder::proxy);
            Ok((client.build()?, Some(variable)))
        }
        Way::Direct | Way::KeptFrom(_) => Ok((client.build()?, None)),
    }
}

/// Clients with the same connections and settings, with and without the proxy of the environment.
#[derive(Clone, Debug)]
pub struct Http {
    direct: Client,
    proxied: Client,
    proxies: Arc<Proxies>,
}

impl Http {
    /// Makes clients whose connections are made within `connect_timeout`; a request has no other timeout. `variable`
    /// gives the value of an environment variable.
    pub fn new(connect_timeout: Duration, variable: impl Fn(&str) -> Option<String>) -> reqwest::Result<Self> {
        let proxies = Proxies::read(variable);
        let builder = || direct().connect_timeout(connect_timeout);
        let through = proxies.list()?.into_iter().fold(builder(), ClientBuilder::proxy).build()?;
        Ok(Self { direct: builder().build()?, proxied: through, proxies: Arc::new(proxies) })
    }

    /// Returns the client for requests to the host of this address. `has_secret` says whether they have something in
    /// them that only their service may read.
    pub fn route(&self, url: &Url, has_secret: bool) -> Route {
        let way = self.proxies.way(url, has_secret);
        let client = match way {
            Way::Direct | Way::KeptFrom(_) => &self.direct,
            Way::Through(_) | Way::Tunnel(_) => &self.proxied,
        };
        Route::new(client.clone(), way)
    }
}
