//! Follows a task to its end. Notices only say when to ask; what is printed comes from the replies, so a lost notice costs
//! at most a short delay, and a restart of any process loses nothing.

use std::time::Duration;

use redial_proto::{
    ApiError, Code, Delta, TaskGet, TaskId, TaskNotice, TaskReport, TaskView,
    subjects::{self, Verb},
};
use redial_queue::{Queue, QueueError, Subscription};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{printer::Printer, waits::Waits};
use crate::{
    connect::{self, REQUEST},
    settings::Settings,
};

/// Notices can get lost; the task is read again after this.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// Prints what happened and what happens in a task until it ends; `None` if the user interrupted this.
pub(crate) async fn follow(
    settings: &Settings,
    queue: &Queue,
    task: TaskId,
    printer: Printer,
) -> anyhow::Result<Option<TaskView>> {
    let interrupted = connect::shutdown()?;
    let mut notices = queue.subscribe(&subjects::task_events(queue.tenant().as_str(), task)).await?;
    let mut deltas = queue.subscribe(&subjects::task_deltas(queue.tenant().as_str(), task)).await?;
    let mut follower = Follower { queue, task, after: 0, printer };
    let mut waits = Waits::new(settings);
    let following = async {
        loop {
            if let Some(view) = follower.catch_up().await? {
                return anyhow::Ok(view);
            }
            let read_again = Instant::now() + READ_AGAIN;
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
                    () = tokio::time::sleep_until(read_again) => {
                        if follower.printer.tells_waits() {
                            follower.printer.waits(&waits.news(task).await)?;
                        }
                        break;
                    }
                }
            }
        }
    };
    let ended = tokio::select! {
        view = following => Some(view?),
        () = interrupted.cancelled() => None,
    };
    if ended.is_none() {
        follower.printer.interrupt()?;
    }
    Ok(ended)
}

/// Returns the next message that can be parsed.
async fn next<T: DeserializeOwned>(messages: &mut Subscription) -> T {
    loop {
        match serde_json::from_slice(&messages.next().await) {
            Ok(message) => return message,
            Err(error) => tracing::debug!(%error, "Ignored a message that could not be parsed"),
        }
    }
}

struct Follower<'a> {
    queue: &'a Queue,
    task: TaskId,
    /// The last step that was printed.
    after: u32,
    printer: Printer,
}

impl Follower<'_> {
    /// Prints new steps; returns the task once it has ended and all is printed. Safe to drop at any await: steps are printed
    /// and counted without one in between.
    async fn catch_up(&mut self) -> anyhow::Result<Option<TaskView>> {
        loop {
            let get = TaskGet { task: self.task, after_step: self.after };
            let report: TaskReport = match self.queue.ask(Verb::TaskGet, &get, REQUEST).await {
                Ok(report) => report,
                Err(error) if error.is_retryable() => {
                    self.printer.unreachable(&connect::user_error(error))?;
                    return Ok(None);
                }
                Err(QueueError::Api(ApiError { code: Code::TaskNotFound, .. })) => {
                    return Err(connect::task_not_found(self.task.0));
                }
                Err(error) => return Err(connect::api(error)),
            };
            self.printer.report(&report)?;
            self.after = report.steps.last().map_or(self.after, |step| step.step);
            if report.more && !report.steps.is_empty() {
                continue;
            }
            if report.task.state.is_terminal() {
                self.printer.end(&report.task)?;
                return Ok(Some(report.task));
            }
            return Ok(None);
        }
    }

    /// Prints a piece of a model's message, after the steps before it.
    async fn delta(&mut self, delta: &Delta) -> anyhow::Result<Option<TaskView>> {
        if self.printer.is_ahead(delta)
            && let Some(view) = self.catch_up().await?
        {
            return Ok(Some(view));
        }
        self.printer.delta(delta)?;
        Ok(None)
    }
}
