//! Lists tasks.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use redial_api::{SearchedTasks, TaskList};
use redial_proto::{TaskCode, TaskId, TaskState, TaskView};
use redial_store::audit::{Limits, TaskFilter, TaskSearch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    bounds::{LOOKED, look_time},
    extract::Query,
    gateway::{Api, Gateway},
    identity::Identity,
    page::{BYTES, Page},
    problem::{JsonResult, Problem},
};

/// Tasks that are read at once.
const AT_ONCE: usize = 50;

/// Which tasks. Every parameter narrows.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksQuery {
    /// In this state.
    state: Option<TaskState>,
    /// Not in this state; may be repeated.
    #[serde(default)]
    not_state: Vec<TaskState>,
    /// Ended with this code.
    code: Option<TaskCode>,
    /// Of this conversation.
    conversation: Option<String>,
    /// Of this declared agent.
    agent: Option<String>,
    /// Not of this declared agent; may be repeated.
    #[serde(default)]
    not_agent: Vec<String>,
    /// That this model began.
    model: Option<String>,
    /// Submitted by this user.
    submitted_by: Option<String>,
    /// With this text in their input.
    contains: Option<String>,
    /// Submitted then or later.
    since: Option<DateTime<Utc>>,
    /// Submitted before.
    until: Option<DateTime<Utc>>,
    /// Entries of a page: 1 to 1,000. Default 50. A page has fewer if they are long.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
    /// How long to look before the answer has what was found, in ms: 10 to 2,000. Default 2,000.
    look_ms: Option<u64>,
}

pub(super) async fn list(Api { gateway, who }: Api, Query(query): Query<TasksQuery>) -> JsonResult<TaskList> {
    Problem::check_times(&[("since", query.since), ("until", query.until)])?;
    let page = Page::<TaskId>::of(&gateway, &who, "tasks", &query).await?;
    let limits = Limits { matches: page.size as usize, looked: LOOKED, time: look_time(query.look_ms)? };
    let search = search(query, page.after);
    let _share = gateway.list_read(&who, page.is_unfiltered).await?;
    let store = gateway.store.of(&who.tenant);
    let found = store.search_tasks(&search, limits).await?;
    let (tasks, cut) = views(&gateway, &who, &found.tasks).await?;
    let complete = found.ended && cut.is_none();
    let next = cut.or(found.last).filter(|_| !complete);
    let searched = SearchedTasks { tasks: found.looked, back_to: found.back_to, complete };
    Ok(axum::Json(TaskList { tasks, next_page_token: page.next(next.as_ref()), searched }))
}

fn search(query: TasksQuery, before: Option<TaskId>) -> TaskSearch {
    let TasksQuery { state, conversation, agent, since, until, .. } = query;
    TaskSearch {
        filter: TaskFilter { state, conversation, agent, since, until, before, ..TaskFilter::default() },
        model: query.model,
        code: query.code,
        submitted_by: query.submitted_by,
        not_states: query.not_state,
        not_agents: query.not_agent,
        text: query.contains,
    }
}

/// Returns as many of the tasks as a page holds in bytes; and the last of them, if that is not all. Those that were
/// erased meanwhile are left out.
async fn views(
    gateway: &Gateway,
    who: &Identity,
    tasks: &[TaskId],
) -> Result<(Vec<TaskView>, Option<TaskId>), Problem> {
    let (mut views, mut bytes, mut last) = (Vec::new(), 0, None);
    for some in tasks.chunks(AT_ONCE) {
        let mut read = gateway.store.task_views(some).await?;
        read.sort_by_key(|(_, view)| Reverse(view.task));
        for (_, view) in read.into_iter().filter(|(tenant, _)| tenant == who.tenant.as_str()) {
            bytes += serde_json::to_vec(&view).map_or(0, |json| json.len());
            if bytes > BYTES && !views.is_empty() {
                return Ok((views, last));
            }
            last = Some(view.task);
            views.push(view);
        }
    }
    Ok((views, None))
}
