//! `/console/tasks/{id}/replay`: the record of a task, decided again.

use axum::{extract::Path, response::Response};
use redial_api::Replay;
use serde_json::Value;

use super::head::{Head, head};
use crate::{
    failure::Failure,
    page::{Shell, Visit},
    show::{self, Html},
};

#[derive(askama::Template)]
#[template(path = "replay.html")]
struct Page {
    shell: Shell,
    head: Head,
    /// `None` while the task has not ended: its record grows.
    replay: Option<Replay>,
}

pub(super) async fn replay(visit: Visit, Path(id): Path<String>) -> Response {
    visit.answer(page(&visit, &id).await)
}

async fn page(visit: &Visit, id: &str) -> Result<Page, Failure> {
    let head = head(visit, id, "replay").await?;
    let replay = if head.story.task.state.is_terminal() {
        Some(visit.api.get(&format!("/v1/tasks/{}/replay", show::url(id))).await?)
    } else {
        None
    };
    // What is on record does not change any more.
    Ok(Page { shell: Shell { asked: visit.api.asked(), ..head.shell.clone() }, head, replay })
}

impl Page {
    fn side(&self, name: &str, step: &u32, value: &Option<Value>) -> Html {
        let nothing = || Html("<p class=\"none\">nothing</p>".to_owned());
        value.as_ref().map_or_else(nothing, |value| crate::json::tree(&format!("{name}{step}"), value))
    }
}
