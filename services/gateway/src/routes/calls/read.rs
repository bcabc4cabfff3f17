//! Reads what is on record of a call.

use redial_api::{CallDetails, CallRecord, ran};
use redial_proto::{CallId, CallView, Code, Language};
use redial_store::audit::CallAudit;
use redial_views::call_view;

use crate::{gateway::Gateway, identity::Identity, problem::Problem};

/// Reads a call of the tenant, as whoever submitted it sees it.
pub(super) async fn read(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
) -> Result<CallView, Problem> {
    Ok(call_view(audit(gateway, who, call).await?, language))
}

/// Reads everything on record of it.
pub(super) async fn read_record(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
) -> Result<CallRecord, Problem> {
    record(audit(gateway, who, call).await?, language)
}

fn record(record: CallAudit, language: Language) -> Result<CallRecord, Problem> {
    let (line, task) = (record.line.clone(), record.task);
    let effect = record.effect.parse().map_err(redial_store::StoreError::BadData)?;
    let details = CallDetails {
        arguments: record.arguments.clone(),
        effect,
        ran: ran(line.state, effect, line.attempts),
        pool: record.pool.clone(),
        deadline_at: record.deadline_at,
        cancel_requested: record.cancel_requested,
        key: line.key,
        conversation: line.conversation,
        task: task.map(|task| task.task),
        turn: task.map(|task| task.turn),
        call_index: task.map(|task| task.call_index),
        redrive_of: record.redrive_of.map(CallId),
        redriven_as: line.redriven_as,
        late_reports: record.late_reports.clone(),
    };
    Ok(CallRecord { view: call_view(record, language), details })
}

async fn audit(gateway: &Gateway, who: &Identity, call: CallId) -> Result<CallAudit, Problem> {
    gateway.hold(who, gateway.store.record_bytes(call).await?).await?;
    let records = gateway.store.of(&who.tenant).records_of(&[call]).await?;
    records.into_iter().next().ok_or_else(|| Problem::new(Code::CallNotFound, format!("no call {call} is on record")))
}
