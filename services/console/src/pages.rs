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
pub(crate) mod statistics;
pub(crate) mod task;
pub(crate) mod tasks;
mod tools;
mod unknown;
pub(crate) mod workers;

use axum::{Router, response::Response, routing::get};

use crate::{console::Console, failure::Failure, page::Visit, show};

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
    let others = Router::new().route("/console/{*path}", get(nothing));
    pages.into_iter().fold(others, Router::merge)
}

async fn nothing(visit: Visit) -> Response {
    let path = visit.here.split('?').next().unwrap_or_default();
    visit.done(Err(Failure::not_found(format!("Nothing is at {}.", show::line(path, 100)))))
}
