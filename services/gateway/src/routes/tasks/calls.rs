//! The calls of a task with their attempts, as a timeline shows them.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, CallState, ErrorClass, FieldError, Repair, TaskId, ToolEffect, TurnReply, Waiting,
    limits::{self, shorten},
};
use redial_store::{
    StoreError,
    audit::{TimedAttempt, TimedCall},
};
use redial_views::{Ran, ran};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

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

/// A part of the calls of a task.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskCallList {
    /// By turn and number.
    calls: Vec<TaskCallItem>,
    /// For the next page; empty at the end.
    next_page_token: String,
}

/// A call of a task with its attempts; `GET /v1/calls/{id}` has everything.
#[derive(Serialize, JsonSchema)]
struct TaskCallItem {
    /// Its id. Tools of effect `keyed` get it as their idempotency key, the same in each attempt.
    call: CallId,
    /// The turn that asked for it.
    turn: u32,
    /// Its number within the turn, from 1; 0 is the turn itself.
    call_index: u32,
    /// The tool; of a turn `model-NAME`.
    tool: String,
    /// Its state.
    state: CallState,
    /// Why it ended without success.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<ErrorClass>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What the tool does to the world.
    effect: ToolEffect,
    /// The pool whose workers run it.
    pool: String,
    /// How often the tool ran.
    ran: Ran,
    /// When it was accepted.
    submitted_at: DateTime<Utc>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
    /// When the next attempt starts, as far as that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<DateTime<Utc>>,
    /// No attempt starts later.
    deadline_at: DateTime<Utc>,
    /// Until when the worker that runs it holds it without a heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_until: Option<DateTime<Utc>>,
    /// What it waits for. Only of the first 20 open calls of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Waiting>,
    /// As the tool gets them; absent for a turn, and if they have over 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    arguments: Option<Box<RawValue>>,
    /// Bytes of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_bytes: Option<u32>,
    /// The arguments as the model wrote them, cut with a mark at 16 KiB, if they were changed before they ran; absent if its answer has
    /// over 256 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<String>,
    /// Lossless changes that were made before it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<Repair>,
    /// The rules that its arguments break.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    details: Vec<FieldError>,
    /// JSON pointers to properties that the tool's schema does not declare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    undeclared: Vec<String>,
    /// The ended call that it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    redrive_of: Option<CallId>,
    /// The call that runs it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    redriven_as: Option<CallId>,
    /// Attempts that were started.
    attempts: u32,
    /// Its last 20 attempts, oldest first, the running one included.
    attempts_made: Vec<AttemptItem>,
}

/// An attempt of a call.
#[derive(Serialize, JsonSchema)]
struct AttemptItem {
    /// Its number, from 1.
    attempt: u32,
    /// The worker that ran it.
    worker: String,
    /// When it was granted.
    started_at: DateTime<Utc>,
    /// When its end was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<DateTime<Utc>>,
    /// How long the tool ran, in ms, by the worker's clock; absent if the worker was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<ErrorClass>,
    /// The same in words, its first 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// When its retry was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<DateTime<Utc>>,
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
    let open = found.iter().filter(|call| call.finished_at.is_none()).take(OPEN).map(|call| CallId(call.call));
    let open: Vec<CallId> = open.collect();
    let mut waits = HashMap::new();
    if !open.is_empty() {
        for record in store.records_of(&open).await? {
            waits.insert(record.line.call, (record.line.next_attempt_at, record.waits));
        }
    }
    let sent = sent(&gateway, &who, task, &found).await?;
    let item = |call: TimedCall| {
        let sent = sent.get(&(call.turn, call.call_index)).cloned();
        let (next_attempt_at, waits) = waits.remove(&call.call).unwrap_or((call.next_attempt_at, None));
        TaskCallItem::of(call, sent, next_attempt_at, waits)
    };
    let calls = found.into_iter().map(item).collect::<Result<_, StoreError>>()?;
    Ok(axum::Json(TaskCallList { calls, next_page_token: page.next(next.as_ref()) }))
}

/// What models wrote for the calls whose arguments were changed before they ran.
async fn sent(
    gateway: &Gateway,
    who: &Identity,
    task: TaskId,
    calls: &[TimedCall],
) -> Result<HashMap<(u32, u32), String>, Problem> {
    let repaired = calls.iter().filter(|call| call.call_index > 0 && call.repairs.is_some()).map(|call| call.turn);
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
        |key: &(u32, u32)| calls.iter().any(|call| (call.turn, call.call_index) == *key && call.repairs.is_some());
    sent.retain(|key, _| is_repaired(key));
    Ok(sent)
}

/// How many of the calls fit into a page; one at least.
fn fitting(calls: &[TimedCall]) -> usize {
    let text = |text: &Option<Box<RawValue>>| text.as_ref().map_or(0, |text| text.get().len());
    let size = |call: &TimedCall| {
        let lists = text(&call.arguments) + text(&call.repairs) + text(&call.details) + text(&call.undeclared);
        let attempts = call.attempts_made.iter().map(|one| 200 + one.message.as_ref().map_or(0, String::len));
        500 + lists + attempts.sum::<usize>()
    };
    limits::fitting(calls.iter().map(size), calls.len(), BYTES).min(calls.len())
}

impl TaskCallItem {
    fn of(
        call: TimedCall,
        sent: Option<String>,
        next_attempt_at: Option<DateTime<Utc>>,
        waits: Option<Waiting>,
    ) -> Result<Self, StoreError> {
        let (state, effect) = (word(&call.state)?, word(&call.effect)?);
        Ok(Self {
            ran: ran(state, effect, call.attempts),
            call: CallId(call.call),
            turn: call.turn,
            call_index: call.call_index,
            tool: call.tool,
            state,
            class: call.class.as_deref().map(word).transpose()?,
            message: call.message,
            effect,
            pool: call.pool,
            submitted_at: call.submitted_at,
            finished_at: call.finished_at,
            next_attempt_at,
            deadline_at: call.deadline_at,
            lease_until: call.lease_until.filter(|_| state == CallState::Running),
            waits,
            arguments: call.arguments,
            arguments_bytes: call.arguments_bytes,
            sent,
            repairs: list(call.repairs.as_deref())?,
            details: list(call.details.as_deref())?,
            undeclared: list(call.undeclared.as_deref())?,
            redrive_of: call.redrive_of.map(CallId),
            redriven_as: call.redriven_as.map(CallId),
            attempts: call.attempts,
            attempts_made: call.attempts_made.into_iter().map(AttemptItem::of).collect::<Result<_, _>>()?,
        })
    }
}

impl AttemptItem {
    fn of(attempt: TimedAttempt) -> Result<Self, StoreError> {
        let TimedAttempt { attempt, worker, started_at, ended_at, duration_ms, class, message, retry_at } = attempt;
        let class = class.as_deref().map(word).transpose()?;
        Ok(Self { attempt, worker, started_at, ended_at, duration_ms, class, message, retry_at })
    }
}

fn word<T: std::str::FromStr<Err = String>>(name: &str) -> Result<T, StoreError> {
    name.parse().map_err(StoreError::BadData)
}

fn list<T: DeserializeOwned>(json: Option<&RawValue>) -> Result<Vec<T>, StoreError> {
    let read = json.map(|json| serde_json::from_str(json.get()));
    Ok(read.transpose().map_err(|error| StoreError::BadData(error.to_string()))?.unwrap_or_default())
}
