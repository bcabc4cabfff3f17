//! The pages: a file for each.

mod overview;
mod sign_in;
mod statistics;
pub(crate) mod task;
pub(crate) mod tasks;

use axum::Router;

use crate::Console;

pub(crate) fn router() -> Router<Console> {
    Router::new().merge(overview::router()).merge(tasks::router()).merge(task::router()).merge(sign_in::router())
}
