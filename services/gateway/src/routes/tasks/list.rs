//! Lists tasks.

use axum::extract::State;
use chrono::{DateTime, Utc};
use redial_proto::{TaskId, TaskState, TaskView};
use redial_store::audit::TaskFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    extract::Query,
    gateway::Shared,
    identity::Identity,
    page::{ListQuery, Page, by_bytes},
    problem::Problem,
};

/// Which tasks. Every parameter narrows.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksQuery {
    /// In this state.
    state: Option<TaskState>,
    /// Of this conversation.
    conversation: Option<String>,
    /// Of this declared agent.
    agent: Option<String>,
    /// Submitted then or later.
    since: Option<DateTime<Utc>>,
    /// Submitted before.
    until: Option<DateTime<Utc>>,
    /// Entries of a page: 1 to 1,000. Default 50. A page has fewer if they are long.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

impl ListQuery for TasksQuery {
    const LIST: &'static str = "tasks";

    fn page(&self) -> (Option<u32>, Option<&str>) {
        (self.page_size, self.page_token.as_deref())
    }
}

/// A part of the tasks.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskList {
    /// Newest first.
    tasks: Vec<TaskView>,
    /// For the next page; empty at the end.
    next_page_token: String,
}

pub(super) async fn list(
    State(gateway): State<Shared>,
    who: Identity,
    Query(query): Query<TasksQuery>,
) -> Result<axum::Json<TaskList>, Problem> {
    Problem::check_times(&[("since", query.since), ("until", query.until)])?;
    let page = Page::<TaskId>::of(&gateway, &who, &query).await?;
    let (store, TasksQuery { state, conversation, agent, since, until, .. }) = (gateway.store.of(&who.tenant), query);
    let filter = TaskFilter { state, conversation, agent, since, until, ..TaskFilter::default() };
    let read = |before, limit| {
        let filter = TaskFilter { before, ..filter.clone() };
        async move { Ok(store.tasks(&filter, limit).await?) }
    };
    let (tasks, next) = by_bytes(&page, |task: &TaskView| task.task, read).await?;
    Ok(axum::Json(TaskList { tasks, next_page_token: page.next(next.as_ref()) }))
}
