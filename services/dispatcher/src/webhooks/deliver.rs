//! Writes the deliveries of events that wait: each is a call.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use redial_engine::{call, publish::FIRST_CHECK_MS};
use redial_proto::{
    CallId, RetryOverride, TaskId, ToolEffect,
    webhook::{Delivery, POOL, RETRY, TIMEOUT_MS, TOOL},
};
use redial_records::NewCall;
use redial_store::{DeliverOutcome, DeliveryLimits, PendingEvent, StoreError, Time, WebhookDelivery};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::payload;
use crate::{context::Context, effects};

/// How much is read at once, and how much may be under way: receivers that do not answer cost no more than this.
const LIMITS: DeliveryLimits = DeliveryLimits { each: 64, of_webhook: 1_000, of_tenant: 4_000, total: 256 };
/// Events whose deliveries are written at once. What is posted about each has 200 KiB at most; of their subjects, which may have 16 MiB,
/// a few MB are read at once.
const WRITTEN: usize = 32;
/// Tasks that are read at once: each has a text of up to 4 MiB.
const TASKS: usize = 4;
/// How long deliveries are written before the dispatcher looks again at what else ended, and renews its lead.
const TURN: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'a str,
    timestamp: Time,
    data: &'a RawValue,
}

/// What is known of the subject of an event.
struct Subject {
    data: Box<RawValue>,
    conversation: Option<String>,
}

/// Writes deliveries, for a while; returns whether more events may wait for theirs.
pub(super) async fn deliver(context: &Context, shutdown: &CancellationToken) -> Result<bool, StoreError> {
    let began = Instant::now();
    loop {
        let pending = context.store.pending_events(LIMITS).await?;
        let mut written = 0;
        for events in pending.chunks(WRITTEN) {
            written += write(context, events).await?;
            if shutdown.is_cancelled() || began.elapsed() > TURN {
                return Ok(true);
            }
        }
        if written == 0 {
            return Ok(false);
        }
    }
}

/// Writes the deliveries of some events, and drops events of what is no longer on record; returns how many do not wait any more.
async fn write(context: &Context, events: &[PendingEvent]) -> Result<usize, StoreError> {
    let subjects = subjects(context, events).await?;
    let mut deliveries = Vec::with_capacity(events.len());
    for event in events {
        let call = match subjects.get(&event.subject) {
            Some(subject) => Some(of_subject(context, event, subject)?),
            None => None,
        };
        deliveries.push(WebhookDelivery { event: event.clone(), call });
    }
    let outcome = context.store.deliver(&deliveries, FIRST_CHECK_MS).await;
    let calls: Vec<&NewCall> = deliveries.iter().filter_map(|one| one.call.as_ref()).collect();
    let written = match &outcome {
        Ok(DeliverOutcome::Written(written)) => written.clone(),
        Ok(DeliverOutcome::Erasing) | Err(_) => HashSet::new(),
    };
    let (done, not_done): (Vec<&NewCall>, Vec<&NewCall>) =
        calls.into_iter().partition(|call| written.contains(&call.id.0));
    context.not_published(not_done.into_iter());
    for call in &done {
        effects::carry_out(context, call::submitted(call)).await;
    }
    let dropped = match outcome? {
        DeliverOutcome::Written(_) => deliveries.iter().filter(|one| one.call.is_none()).count(),
        DeliverOutcome::Erasing => 0,
    };
    if dropped > 0 {
        tracing::warn!(dropped, "Dropped webhook events of calls and tasks that are not on record any more");
    }
    Ok(done.len() + dropped)
}

fn of_subject(context: &Context, event: &PendingEvent, subject: &Subject) -> Result<NewCall, StoreError> {
    let bad = |error: serde_json::Error| StoreError::BadData(error.to_string());
    let body = body(event, &subject.data).map_err(bad)?;
    let mut call = new_call(event, body, subject.conversation.clone()).map_err(bad)?;
    call.consumer = context.admit_new(&call);
    Ok(call)
}

/// Reads the subjects of events, as far as they are on record.
async fn subjects(context: &Context, events: &[PendingEvent]) -> Result<HashMap<Uuid, Subject>, StoreError> {
    let (tasks, calls): (Vec<&PendingEvent>, Vec<&PendingEvent>) =
        events.iter().partition(|event| event.event.starts_with("task."));
    let ids = |events: &[&PendingEvent]| events.iter().map(|event| event.subject).collect::<HashSet<Uuid>>();
    let tenants: HashMap<Uuid, &str> = events.iter().map(|event| (event.subject, event.tenant.as_str())).collect();
    let is_own = |subject: Uuid, tenant: &str| tenants.get(&subject) == Some(&tenant);
    let mut subjects = HashMap::with_capacity(events.len());
    let calls: Vec<CallId> = ids(&calls).into_iter().map(CallId).collect();
    for group in context.store.record_groups(&calls).await? {
        for record in context.store.records_of_ended(&group).await? {
            let (id, conversation) = (record.line.call.0, record.line.conversation.clone());
            if is_own(id, &record.tenant) {
                subjects.insert(id, Subject { data: payload::of_call(record)?, conversation });
            }
        }
    }
    let tasks: Vec<TaskId> = ids(&tasks).into_iter().map(TaskId).collect();
    for some in tasks.chunks(TASKS) {
        for (tenant, view) in context.store.task_views(some).await? {
            let (id, conversation) = (view.task.0, Some(view.conversation.clone()));
            if is_own(id, &tenant) {
                subjects.insert(id, Subject { data: payload::of_task(view)?, conversation });
            }
        }
    }
    Ok(subjects)
}

pub(super) fn body(event: &PendingEvent, data: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
    to_raw_value(&Body { r#type: &event.event, timestamp: event.at, data })
}

/// Makes the call that delivers an event. Its conversation is that of its subject, so that an erasure finds it.
pub(super) fn new_call(
    event: &PendingEvent,
    body: Box<RawValue>,
    conversation: Option<String>,
) -> Result<NewCall, serde_json::Error> {
    let delivery = Delivery {
        webhook: event.webhook,
        url: event.url.clone(),
        event: format!("evt_{}", event.subject.simple()),
        key: event.key.clone(),
        version: event.version,
        previous_until: event.previous_until,
        body,
    };
    let retry = RetryOverride {
        initial_ms: Some(RETRY.initial_ms),
        factor: Some(RETRY.factor),
        cap_ms: Some(RETRY.cap_ms),
        max_attempts: Some(RETRY.max_attempts),
        deadline_ms: Some(RETRY.deadline_ms),
    };
    Ok(NewCall {
        id: CallId::generate(),
        tool: TOOL.to_owned(),
        pool: POOL.to_owned(),
        effect: ToolEffect::Idempotent,
        tenant: event.tenant.clone(),
        key: None,
        content: None,
        conversation,
        arguments: serde_json::to_string(&delivery)?,
        tool_version: None,
        repairs: Vec::new(),
        undeclared: Vec::new(),
        help: None,
        timeout_ms: TIMEOUT_MS,
        retry: Some(retry),
        notify: false,
        traceparent: None,
        deadline_ms: RETRY.deadline_ms,
        refusal: None,
        redrive_of: None,
        task: None,
        consumer: None,
        submitted_by: None,
    })
}
