//! `/console`: what needs attention, and where things stand.

use axum::extract::Form;
use axum::http::header;
use axum::{
    Router,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde::Deserialize;

use super::tasks::TaskList;
use crate::{
    Console,
    failure::Failure,
    page::{Shell, THEME, Visit},
};

pub(super) fn router() -> Router<Console> {
    Router::new().route("/console", get(overview)).route("/console/theme", post(theme))
}

#[derive(askama::Template)]
#[template(path = "overview.html")]
struct Page {
    shell: Shell,
    tasks: TaskList,
}

async fn overview(visit: Visit) -> Response {
    visit.answer(page(&visit).await)
}

async fn page(visit: &Visit) -> Result<Page, Failure> {
    let tasks = visit.api.get("/v1/tasks?page_size=10").await?;
    Ok(Page { shell: visit.frame("Overview").live("/v1/events").again(10), tasks })
}

/// Dark or light, and where to go on.
#[derive(Deserialize)]
struct Theme {
    theme: String,
    #[serde(default)]
    next: String,
}

async fn theme(Form(chosen): Form<Theme>) -> Response {
    let next = if chosen.next.starts_with("/console") { chosen.next.as_str() } else { "/console" };
    let theme = if chosen.theme == "dark" { "dark" } else { "light" };
    let cookie = format!("{THEME}={theme}; Path=/console; Max-Age=31536000; SameSite=Strict; HttpOnly");
    ([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response()
}
