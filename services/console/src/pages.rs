//! The pages: a file for each.

mod call;
pub(crate) mod calls;
mod overview;
mod sign_in;
mod statistics;
pub(crate) mod task;
pub(crate) mod tasks;

use axum::Router;

use crate::Console;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .merge(overview::router())
        .merge(tasks::router())
        .merge(task::router())
        .merge(sign_in::router())
        .merge(calls::router())
        .merge(call::router())
}
