//! The addresses: a file for each resource.

mod actions;
mod agents;
mod calls;
mod chat;
mod conversations;
mod docs;
mod events;
mod health;
mod models;
mod pages;
mod queues;
mod redrives;
mod rejected;
mod responses;
mod session;
pub(crate) mod statistics;
mod tasks;
mod tokens;
mod tools;
mod webhooks;
mod workers;

use crate::endpoint::Endpoint;

pub(crate) fn all() -> Vec<Endpoint> {
    [
        calls::endpoints(),
        tasks::endpoints(),
        conversations::endpoints(),
        events::endpoints(),
        tools::endpoints(),
        agents::endpoints(),
        workers::endpoints(),
        queues::endpoints(),
        redrives::endpoints(),
        rejected::endpoints(),
        statistics::endpoints(),
        webhooks::endpoints(),
        tokens::endpoints(),
        session::endpoints(),
        actions::endpoints(),
        responses::endpoints(),
        chat::endpoints(),
        models::endpoints(),
        health::endpoints(),
        pages::endpoints(),
        docs::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
