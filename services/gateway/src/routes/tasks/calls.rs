//! The calls of a task with their attempts, as a timeline shows them.

use std::collections::{BTreeSet, HashMap};

use redial_api::{TaskCallItem, TaskCallList};
use redial_proto::{
    CallId, TaskId, TurnReply,
    limits::{self, shorten},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::get::not_found;
use crate::{
    extract::{Id, Query},
    gateway::{Api, Gateway},
    identity::Identity,
    page::Page,
    problem::{JsonResult, Problem},
};

/// Calls of a page, whatever it asks for: each has its attempts.
const MOST: u32 = 200;
/// Bytes of what a model wrote.
const SENT: usize = 16 * 1024;
/// Open calls of a page whose reasons to wait are looked up.
const OPEN: usize = 20;
/// Bytes of a page, about.
const BYTES: usize = 4 * 1024 * 1024;

/// Which page.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskCallsQuery {
    /// Entries of a page: 1 to 1,000. Default 50. A page has 200 at most, and fewer if they are long.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
    /// Only calls of this turn and later ones.
    #[schemars(range(min = 1))]
    from_turn: Option<u32>,
    /// The task in the path: a token of one task is not good for another.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    task: Option<TaskId>,
}

pub(super) async fn calls(
    Api { gateway, who }: Api,
    Id(task): Id<TaskId>,
    Query(mut query): Query<TaskCallsQuery>,
) -> JsonResult<TaskCallList> {
    query.task = Some(task);
    let page = Page::<(u32, u32)>::of(&gateway, &who, "calls of a task", &query).await?;
    let size = page.size.min(MOST);
    let _share = gateway.long_read(&who).await?;
    let store = gateway.store.of(&who.tenant);
    // Behind the last call that the turn before can have.
    let first = query.from_turn.filter(|turn| *turn > 1).map_or((0, 0), |turn| (turn - 1, u32::MAX));
    let mut found = store.timed_calls(task, page.after.unwrap_or(first), size).await?;
    if found.is_empty() && store.task(task).await?.is_none() {
        return Err(not_found(task));
    }
    let is_full = found.len() == size as usize;
    let fitting = fitting(&found);
    let next = (is_full || fitting < found.len()).then(|| &found[fitting - 1]).map(|last| (last.turn, last.call_index));
    found.truncate(fitting);
    let open = found.iter().filter(|call| call.finished_at.is_none()).take(OPEN).map(|call| call.call);
    let open: Vec<CallId> = open.collect();
    let records = if open.is_empty() { Vec::new() } else { store.records_of(&open).await? };
    let mut sent = sent(&gateway, &who, task, &found).await?;
    for call in &mut found {
        if let Some(record) = records.iter().find(|record| record.line.call == call.call) {
            (call.next_attempt_at, call.waits) = (record.line.next_attempt_at, record.waits);
        }
        call.sent = sent.remove(&(call.turn, call.call_index));
    }
    Ok(axum::Json(TaskCallList { calls: found, next_page_token: page.next(next.as_ref()) }))
}

/// Reads what models wrote for the calls whose arguments were changed before they ran.
async fn sent(
    gateway: &Gateway,
    who: &Identity,
    task: TaskId,
    calls: &[TaskCallItem],
) -> Result<HashMap<(u32, u32), String>, Problem> {
    let repaired = calls.iter().filter(|call| call.call_index > 0 && !call.repairs.is_empty()).map(|call| call.turn);
    let turns: Vec<u32> = repaired.collect::<BTreeSet<u32>>().into_iter().collect();
    let mut sent = HashMap::new();
    for (turn, reply) in gateway.store.of(&who.tenant).replies(task, &turns).await? {
        // An answer that this version cannot read says nothing.
        let Ok(reply) = serde_json::from_str::<TurnReply>(&reply) else { continue };
        for (call, number) in reply.calls.iter().zip(1..) {
            sent.insert((turn, number), shorten(&call.arguments, SENT));
        }
    }
    let is_repaired =
        |key: &(u32, u32)| calls.iter().any(|call| (call.turn, call.call_index) == *key && !call.repairs.is_empty());
    sent.retain(|key, _| is_repaired(key));
    Ok(sent)
}

/// Counts the calls that fit into a page; one at least.
fn fitting(calls: &[TaskCallItem]) -> usize {
    let size = |call: &TaskCallItem| serde_json::to_vec(call).map_or(0, |json| json.len());
    limits::fitting(calls.iter().map(size), calls.len(), BYTES).min(calls.len())
}
