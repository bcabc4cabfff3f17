//! `/console/tasks`: the tasks, newest first.

use axum::Router;
use redial_api::TaskList;
use redial_proto::{TaskState, TaskView};

use crate::{
    console::Console,
    failure::Failure,
    filter::{Chip, Filter},
    page::{self, Shell, Visiting},
    show,
};

pub(crate) const PATH: &str = "/console/tasks";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(tasks))
}

#[derive(askama::Template)]
#[template(path = "tasks.html")]
struct Page {
    shell: Shell,
    filter: Filter,
    chips: Vec<Chip>,
    tasks: Vec<TaskView>,
    next: Option<String>,
}

async fn tasks(visit: Visiting) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let list: TaskList = visit.api.get(&format!("/v1/tasks{}", filter.request(&[]))).await?;
    let next = filter.next(PATH, &list.next_page_token);
    let shell = visit.frame("Tasks");
    // Rows come on top: an older page stays as it is.
    let shell = if filter.get("page_token").is_empty() { shell.live("/v1/events").again(10) } else { shell };
    Ok(Page { shell, chips: filter.chips(PATH), tasks: list.tasks, next, filter })
}

impl Page {
    fn states(&self) -> Vec<(&'static str, String, bool)> {
        let state = |state: &TaskState| {
            let name = state.as_str();
            let is_on = self.filter.is("state", name);
            let to = self.filter.with("state", if is_on { "" } else { name }).query();
            (name, format!("{PATH}{to}"), is_on)
        };
        TaskState::ALL.iter().map(state).collect()
    }
}

/// Says how long a task took, or takes so far.
pub(crate) fn took(task: &TaskView) -> String {
    let end = task.finished_at.unwrap_or_else(chrono::Utc::now);
    show::span((end - task.submitted_at).num_milliseconds().max(0))
}

/// Returns what a list says about a task under its input.
pub(crate) fn outcome(task: &TaskView) -> String {
    let text = match (&task.message, &task.answer, task.code) {
        (Some(message), ..) => message.clone(),
        (None, Some(answer), _) => answer.clone(),
        (None, None, Some(code)) => show::words(code.as_str()),
        (None, None, None) => String::new(),
    };
    show::line(&text, 200)
}
