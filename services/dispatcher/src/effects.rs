//! Carries out effects: what is to be done once a transition is on record.
//!
//! If the process dies before or within this, nothing is lost: the sweep finds jobs that were not published and tasks
//! that were not advanced, heartbeat replies name what was cancelled, a task that wakes asks again for its calls to be
//! cancelled, and clients that wait for an event ask again.

use std::collections::VecDeque;

use redial_proto::{CallId, CallView, ControlMessage, GrantRef, Language, TaskNotice, WorkerId, subjects};
use redial_queue::QueueError;
use redial_records::Effect;
use redial_store::StoreError;
use redial_views::call_view;

use crate::{context::Context, transitions};

/// Carries out effects in their order.
pub(crate) async fn carry_out(context: &Context, effects: Vec<Effect>) {
    let mut pending = VecDeque::from(effects);
    let mut ended = Vec::new();
    while let Some(effect) = pending.pop_front() {
        match effect {
            Effect::PublishJob(job) => context.publish(job).await,
            // The effects of the cancel come first, so that its worker stops early.
            Effect::CancelCall(call) => {
                cancel(context, call).await.into_iter().rev().for_each(|effect| pending.push_front(effect));
            }
            Effect::StopWorker { worker, grant } => stop_worker(context, &worker, grant).await,
            Effect::NotifySubmitter(call) => ended.push(call),
            Effect::NotifyWatchers { tenant, notice } => notify_watchers(context, &tenant, &notice).await,
            Effect::WakeTask(task) => context.wake_set.wake(task),
            Effect::WakeSweeper => context.due.notify_one(),
            Effect::WakeFeeder { part, since } => context.feeder.wake(part, since),
        }
    }
    if !ended.is_empty() {
        notify_submitters(context, &ended).await;
    }
}

/// Cancels a call of a task; returns the effects of that.
async fn cancel(context: &Context, call: CallId) -> Vec<Effect> {
    match transitions::cancel(context, call).await {
        Ok(cancelled) => cancelled.effects,
        Err(error) => {
            tracing::warn!(%error, %call, "Failed to cancel a call; its task asks again");
            Vec::new()
        }
    }
}

async fn stop_worker(context: &Context, worker: &WorkerId, grant: GrantRef) {
    let message = ControlMessage { ingested: Vec::new(), cancelled: vec![grant] };
    if let Err(error) = context.queue.publish(&subjects::worker(worker), &message).await {
        tracing::warn!(%error, %worker, "Failed to notify a worker of a cancelled call; the reply to its next heartbeat names it");
    }
}

/// Publishes what is on record of ended calls: all that a client would get if it asked. A few MB are read at once.
async fn notify_submitters(context: &Context, calls: &[CallId]) {
    if let Err(error) = try_notify_submitters(context, calls).await {
        tracing::warn!(%error, calls = calls.len(), "Failed to read calls that ended; their submitters ask again");
    }
}

async fn try_notify_submitters(context: &Context, calls: &[CallId]) -> Result<(), StoreError> {
    for group in context.store.groups_in_order(calls).await? {
        for record in context.store.records_of_ended(&group).await? {
            let tenant = record.tenant.clone();
            notify_submitter(context, &tenant, &call_view(record, Language::default())).await;
        }
    }
    Ok(())
}

async fn notify_submitter(context: &Context, tenant: &str, view: &CallView) {
    let published = context.queue.publish(&subjects::call_events(tenant, view.call), view).await;
    if let Err(error @ QueueError::TooLarge { .. }) = published {
        tracing::debug!(%error, call = %view.call, "Told nobody of the end of a call, which is too large for a message; its submitter asks again");
    } else if let Err(error) = published {
        tracing::warn!(%error, call = %view.call, "Failed to publish the end of a call; its submitter asks again");
    }
}

async fn notify_watchers(context: &Context, tenant: &str, notice: &TaskNotice) {
    if let Err(error) = context.queue.publish(&subjects::task_events(tenant, notice.task), notice).await {
        tracing::debug!(%error, task = %notice.task, "Failed to notify watchers of a step");
    }
}
