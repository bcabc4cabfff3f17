//! The addresses: a file for each resource.

mod calls;
mod events;
mod health;
mod pages;
mod tasks;

use crate::endpoint::Endpoint;

/// Every endpoint.
pub(crate) fn all() -> Vec<Endpoint> {
    [calls::endpoints(), events::endpoints(), tasks::endpoints(), health::endpoints(), pages::endpoints()].into_iter().flatten().collect()
}
