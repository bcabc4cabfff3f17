//! How requests get to one host.

use redial_proto::{ErrorClass, Failure};
use reqwest::Client;

/// A way with the name of the variable that has to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// Past the proxy, which would read a secret.
    KeptFrom(&'static str),
    /// The proxy sees all of it, and may answer it.
    Through(&'static str),
    /// The proxy sees the host only.
    Tunnel(&'static str),
}

#[derive(Clone, Debug)]
pub struct Route {
    client: Client,
    way: Way,
}

impl Route {
    pub(crate) fn new(client: Client, way: Way) -> Self {
        Self { client, way }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Adds to a failure without a complete answer what a proxy has to do with it.
    #[must_use]
    pub fn unanswered(&self, failure: Failure) -> Failure {
        match self.way {
            Way::Direct => failure,
            Way::KeptFrom(variable) => {
                let why = "was not used, because the request has a secret and is not encrypted";
                add(failure, &format!("the proxy of {variable} {why}"))
            }
            Way::Through(variable) | Way::Tunnel(variable) => through(failure, variable),
        }
    }

    /// Adds to the failure for an answer that it may be that of a proxy.
    #[must_use]
    pub fn answered(&self, failure: Failure) -> Failure {
        use ErrorClass::{Auth, Configuration, RateLimited, Unavailable};
        match self.way {
            Way::Through(variable) if matches!(failure.class, Auth | Configuration | RateLimited | Unavailable) => {
                through(failure, variable)
            }
            Way::Direct | Way::KeptFrom(_) | Way::Through(_) | Way::Tunnel(_) => failure,
        }
    }
}

fn through(failure: Failure, variable: &str) -> Failure {
    add(failure, &format!("the request went through the proxy of {variable}"))
}

fn add(failure: Failure, why: &str) -> Failure {
    if failure.message.ends_with(why) {
        return failure;
    }
    Failure { message: format!("{}; {why}", failure.message), ..failure }
}
