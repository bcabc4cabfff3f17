//! Reads what is on record of a call.

use chrono::{DateTime, Utc};
use redial_proto::{CallId, CallState, CallView, Code, Language, TaskId, ToolEffect};
use redial_store::audit::{CallAudit, LateRecord};
use redial_views::{Ran, call_view, ran};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{gateway::Gateway, identity::Identity, problem::Problem};

/// A call with everything on record about it.
#[derive(Serialize, JsonSchema)]
pub(super) struct CallRecord {
    #[serde(flatten)]
    pub(super) view: CallView,
    /// As the tool gets them: as sent, but for the repairs.
    #[schemars(with = "serde_json::Value")]
    arguments: Box<RawValue>,
    /// What the tool does to the world; decides whether the call is retried when nobody knows how an attempt ended.
    effect: ToolEffect,
    /// How often the tool ran.
    ran: Ran,
    /// The pool whose workers run it.
    pool: String,
    /// No attempt starts later.
    deadline_at: DateTime<Utc>,
    /// Somebody asked to stop it while it ran.
    cancel_requested: bool,
    /// The idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    /// The task that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    /// The turn of the task that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    /// Its number within the turn, from 1; 0 is the turn itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_index: Option<u32>,
    /// The ended call that this one runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    redrive_of: Option<CallId>,
    /// The call that runs this one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    redriven_as: Option<CallId>,
    /// Reports that arrived too late to count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    late_reports: Vec<LateReport>,
}

/// A report that arrived too late to count.
#[derive(Serialize, JsonSchema)]
struct LateReport {
    /// Of which attempt.
    attempt: i32,
    /// The worker that sent it.
    worker: String,
    /// When it arrived.
    received_at: DateTime<Utc>,
    /// `succeeded`, or the error class.
    outcome: String,
}

impl CallRecord {
    fn of(record: CallAudit, language: Language) -> Result<Self, Problem> {
        let line = &record.line;
        let (key, conversation) = (line.key.clone(), line.conversation.clone());
        let (redrive_of, redriven_as) = (record.redrive_of.map(CallId), line.redriven_as.map(CallId));
        let late = |late: &LateRecord| LateReport {
            attempt: late.attempt,
            worker: late.worker.clone(),
            received_at: late.received_at,
            outcome: late.outcome.clone(),
        };
        let effect = record.effect.parse().map_err(redial_store::StoreError::BadData)?;
        let state = CallState::shown(&line.state);
        let attempts = u32::try_from(line.attempts).unwrap_or(0);
        Ok(Self {
            arguments: record.arguments.clone(),
            effect,
            ran: ran(state, effect, attempts),
            pool: record.pool.clone(),
            deadline_at: record.deadline_at,
            cancel_requested: record.cancel_requested,
            key,
            conversation,
            task: record.task.as_ref().map(|task| task.task),
            turn: record.task.as_ref().map(|task| task.turn),
            call_index: record.task.as_ref().map(|task| task.call_index),
            redrive_of,
            redriven_as,
            late_reports: record.late_reports.iter().map(late).collect(),
            view: call_view(record, language),
        })
    }
}

/// A call of the tenant, as whoever submitted it sees it.
pub(super) async fn read(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
) -> Result<CallView, Problem> {
    Ok(call_view(audit(gateway, who, call).await?, language))
}

/// The same with everything on record.
pub(super) async fn read_record(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
) -> Result<CallRecord, Problem> {
    CallRecord::of(audit(gateway, who, call).await?, language)
}

async fn audit(gateway: &Gateway, who: &Identity, call: CallId) -> Result<CallAudit, Problem> {
    gateway.hold(who, gateway.store.record_bytes(call).await?).await?;
    let records = gateway.store.of(&who.tenant).records_of(&[call]).await?;
    records.into_iter().next().ok_or_else(|| Problem::new(Code::CallNotFound, format!("no call {call} is on record")))
}
