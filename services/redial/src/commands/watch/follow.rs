//! Follows a task to its end. Hints say when to ask; what is told comes from the answers alone, so a lost hint costs a
//! moment and a restart of anything costs nothing.

use std::time::Duration;

use redial_proto::{Delta, TaskGet, TaskId, TaskNotice, TaskReport, TaskView, subjects};
use redial_queue::{Queue, Subscription};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Teller;
use crate::commands::{REQUEST, api, shutdown};

/// Hints can get lost; asked again after this.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Tells what happened and happens to a task until it is over; `None` if the user has seen enough.
pub(crate) async fn follow(queue: &Queue, task: TaskId, teller: Teller) -> anyhow::Result<Option<TaskView>> {
    let interrupted = shutdown()?;
    let mut notices = queue.subscribe(&subjects::task_events(task)).await?;
    let mut deltas = queue.subscribe(&subjects::task_deltas(task)).await?;
    let mut follower = Follower { queue, task, after: 0, teller };
    let following = async {
        loop {
            if let Some(view) = follower.catch_up().await? {
                return anyhow::Ok(view);
            }
            let ask_again = Instant::now() + ASK_AGAIN;
            loop {
                tokio::select! {
                    notice = next::<TaskNotice>(&mut notices) => {
                        if notice.step > follower.after || notice.state.is_terminal() {
                            break;
                        }
                    }
                    delta = next::<Delta>(&mut deltas) => {
                        if let Some(view) = follower.delta(&delta).await? {
                            return Ok(view);
                        }
                    }
                    () = tokio::time::sleep_until(ask_again) => break,
                }
            }
        }
    };
    let ended = tokio::select! {
        view = following => Some(view?),
        () = interrupted.cancelled() => None,
    };
    if ended.is_none() {
        follower.teller.interrupt();
    }
    Ok(ended)
}

/// The next hint that can be read. A connection that was closed for good brings none.
async fn next<T: DeserializeOwned>(hints: &mut Subscription) -> T {
    loop {
        match hints.next().await.as_deref().map(serde_json::from_slice) {
            Some(Ok(hint)) => return hint,
            Some(Err(error)) => tracing::debug!(%error, "a hint that cannot be read"),
            None => std::future::pending().await,
        }
    }
}

struct Follower<'a> {
    queue: &'a Queue,
    task: TaskId,
    /// The last step that was told.
    after: u32,
    teller: Teller,
}

impl Follower<'_> {
    /// Tells all that is new; returns the task once it is over and told whole. May be dropped at any time: a step is
    /// told and counted at once.
    async fn catch_up(&mut self) -> anyhow::Result<Option<TaskView>> {
        loop {
            let get = TaskGet { task: self.task, after: self.after };
            let report: TaskReport = match self.queue.request(subjects::TASK_GET, &get, REQUEST).await {
                Ok(report) => report,
                Err(error) if error.is_retryable() => {
                    self.teller.unreachable(&error);
                    return Ok(None);
                }
                Err(error) => return Err(api(error)),
            };
            self.teller.report(&report)?;
            self.after = report.steps.last().map_or(self.after, |step| step.n);
            if report.more && !report.steps.is_empty() {
                continue;
            }
            if report.task.state.is_terminal() {
                self.teller.end(&report.task);
                return Ok(Some(report.task));
            }
            return Ok(None);
        }
    }

    /// A piece of an answer. If its turn is not known yet, what led to it is asked for first.
    async fn delta(&mut self, delta: &Delta) -> anyhow::Result<Option<TaskView>> {
        if self.teller.is_ahead(delta)
            && let Some(view) = self.catch_up().await?
        {
            return Ok(Some(view));
        }
        self.teller.delta(delta);
        Ok(None)
    }
}
