//! Asks for the addresses of a receiver's host, and refuses those that are not on the public internet. The connection is made
//! to the addresses that were checked, so a name that changes its addresses gains nothing.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use redial_webhooks::{Allowed, Refused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Finds the addresses of a name.
pub(super) trait Lookup: Send + Sync + 'static {
    fn addresses(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's own resolver.
pub(super) struct System;

impl Lookup for System {
    fn addresses(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect()) }.boxed()
    }
}

pub(super) struct PublicOnly {
    allowed: Arc<Allowed>,
    lookup: Arc<dyn Lookup>,
}

impl PublicOnly {
    pub(super) fn new(allowed: Allowed, lookup: Arc<dyn Lookup>) -> Self {
        Self { allowed: Arc::new(allowed), lookup }
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (allowed, found) = (Arc::clone(&self.allowed), self.lookup.addresses(host.clone()));
        async move {
            let found = found.await?;
            // One that is not public among others is no accident.
            let refused = found.iter().find(|address| !allowed.names(&host) && !allowed.may_reach(**address));
            if let Some(address) = refused {
                tracing::debug!(host, %address, "Refused to deliver to a host that is not on the public internet");
                return Err(Box::new(Refused::Private) as Box<dyn Error + Send + Sync>);
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        }
        .boxed()
    }
}
