//! The pages: a file for each.

mod audit;
mod call;
pub(crate) mod calls;
mod conversations;
mod failed;
mod find;
mod models;
mod overview;
pub(crate) mod redrives;
mod settings;
mod sign_in;
mod statistics;
pub(crate) mod task;
pub(crate) mod tasks;
mod tools;
mod unknown;
pub(crate) mod workers;

use axum::Router;

use crate::console::Console;

pub(crate) fn router() -> Router<Console> {
    let pages = [
        overview::router(),
        tasks::router(),
        task::router(),
        calls::router(),
        call::router(),
        failed::router(),
        redrives::router(),
        unknown::router(),
        find::router(),
        models::router(),
        tools::router(),
        workers::router(),
        conversations::router(),
        audit::router(),
        settings::router(),
        sign_in::router(),
    ];
    pages.into_iter().fold(Router::new(), Router::merge)
}
