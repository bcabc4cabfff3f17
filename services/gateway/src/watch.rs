//! Tells those who wait: from the events of the dispatchers, and from the database for those that were missed.

use std::time::{Duration, Instant};

use redial_proto::{CallId, TaskId};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{gateway::Shared, hub::Subject};

/// How often it is looked for what the database is to be asked about.
const LOOK: Duration = Duration::from_millis(20);
/// Calls and tasks that one statement asks about.
const LOOKED: usize = 5_000;
/// How often it is written down when tokens were last used.
const USED: Duration = Duration::from_secs(30);
/// How often peers are told of whose tokens were refused.
const MINUTE: Duration = Duration::from_mins(1);

/// Events of calls and of tasks of all tenants, without the pieces of models' answers.
pub(crate) const EVENTS: [&str; 2] = ["redial.events.*.calls.*", "redial.events.*.tasks.*"];

pub(crate) async fn hear(gateway: Shared, mut events: redial_queue::Subscription, shutdown: CancellationToken) {
    loop {
        let (subject, body) = tokio::select! {
            event = events.next_with_subject() => event,
            () = shutdown.cancelled() => return,
        };
        let mut tokens = subject.strip_prefix("redial.events.").unwrap_or_default().split('.');
        let (Some(tenant), Some(kind), Some(id)) = (tokens.next(), tokens.next(), tokens.next()) else { continue };
        let (Ok(tenant), Ok(id)) = (tenant.parse(), id.parse::<Uuid>()) else { continue };
        if kind == "tasks" {
            gateway.streams.tails.notice(&tenant, &body);
        }
        gateway.hub.heard(Subject { tenant, id }, (kind == "calls").then_some(body));
    }
}

/// Looks at what is waited for, and tells what changed since the last look.
pub(crate) async fn look(gateway: Shared, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shutdown.cancelled() => return,
        }
        let ids: Vec<Uuid> = gateway.hub.due(Instant::now()).into_iter().map(|subject| subject.id).collect();
        for ids in ids.chunks(LOOKED) {
            let found = match gateway.store.progress(ids).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "Failed to look at what requests wait for; trying again");
                    break;
                }
            };
            for progress in found {
                let Ok(tenant) = progress.tenant.parse() else { continue };
                gateway.hub.looked(&Subject { tenant, id: progress.id }, progress.position, progress.has_ended());
            }
        }
    }
}

pub(crate) async fn write_used_tokens(gateway: Shared, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(USED) => {}
            () = shutdown.cancelled() => {}
        }
        let used = gateway.tokens.take_used();
        if !used.is_empty()
            && let Err(error) = gateway.store.mark_tokens_used(&used).await
        {
            tracing::warn!(%error, tokens = used.len(), "Failed to write when tokens were used");
        }
        if shutdown.is_cancelled() {
            return;
        }
    }
}

/// Warns of refused tokens, of each peer at most once a minute.
pub(crate) async fn warn_of_refused_tokens(gateway: Shared, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(MINUTE) => {}
            () = shutdown.cancelled() => {}
        }
        gateway.refusals.warn();
    }
}

pub(crate) fn call_subject(who: &crate::identity::Identity, call: CallId) -> Subject {
    Subject { tenant: who.tenant.clone(), id: call.0 }
}

pub(crate) fn task_subject(who: &crate::identity::Identity, task: TaskId) -> Subject {
    Subject { tenant: who.tenant.clone(), id: task.0 }
}
