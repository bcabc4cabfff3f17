//! The pages: a file for each.

mod call;
pub(crate) mod calls;
mod failed;
mod find;
mod overview;
pub(crate) mod redrives;
mod sign_in;
mod statistics;
pub(crate) mod task;
pub(crate) mod tasks;
mod unknown;

use axum::Router;

use crate::Console;

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
        sign_in::router(),
    ];
    pages.into_iter().fold(Router::new(), Router::merge)
}
