//! The events of a task: its steps, and what its model writes meanwhile.

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use redial_proto::{Code, StoredMessage, TaskDecision, TaskId, TaskInput, TaskReport, TaskStep, Tenant};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    id::{After, Position, number, wrong},
    stream::{self, Progress, Source},
};
use crate::{
    gateway::Shared,
    hub::Waiter,
    identity::Identity,
    problem::Problem,
    streams::{
        live::{Follower, Sent},
        sse::{END, Page},
    },
    watch::task_subject,
};

/// Bytes of a page, about.
const PAGE: usize = 64 * 1024;
const IDS: &str = "the id of an event of this task, as 3.0, or end";

/// Streams the events of a task after the one that the request names.
pub(crate) async fn follow_task(
    gateway: Shared,
    who: Identity,
    task: TaskId,
    after: &After,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let permit = who.limits.stream()?;
    let from = after.position(headers, of_id, IDS)?;
    let waiter = gateway.hub.wait_for(task_subject(&who, task));
    let mut events = TaskEvents {
        tenant: who.tenant,
        task,
        waiter,
        after: (0, 0),
        is_due: true,
        turn: Turn::Unknown,
        live: None,
        sent: None,
        looked_for: 0,
        gateway,
    };
    let mut page = Page::first();
    let progress = match from {
        Some(Position::End) => {
            let report = events.report(u32::MAX).await?;
            if !report.task.state.is_terminal() {
                return Err(wrong(END, "the id of an event of this task, as 3.0: it has not ended"));
            }
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        Some(Position::Event((step, index))) => events.resume(step, index, &mut page).await?,
        None => events.read(&mut page).await?,
    };
    Ok(stream::answer(events.gateway.clone(), permit, events, page, progress))
}

/// Returns the step of an event's id, and the position within it: 0 is what happened, 1 and more its decisions.
fn of_id(id: &str) -> Option<(u32, usize)> {
    let (step, index) = id.split_once('.')?;
    let step = number(step).filter(|step| *step > 0)?;
    Some((step, usize::try_from(number(index)?).ok()?))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// This stream has not shown a turn yet.
    Unknown,
    /// The model was asked, and has not answered.
    Open(u32),
    /// Up to this one the models have answered.
    Over(u32),
}

struct TaskEvents {
    gateway: Shared,
    tenant: Tenant,
    task: TaskId,
    waiter: Waiter,
    /// The last step that was shown, and of the next one how many events were shown before this stream began.
    after: (u32, usize),
    /// The record may have more.
    is_due: bool,
    turn: Turn,
    live: Option<Follower>,
    sent: Option<Sent>,
    /// The last turn whose step was looked for because its text came first.
    looked_for: u32,
}

impl Source for TaskEvents {
    async fn news(&mut self) {
        let Some(live) = &mut self.live else {
            self.waiter.next().await;
            self.is_due = true;
            return;
        };
        tokio::select! {
            _ = self.waiter.next() => self.is_due = true,
            () = live.changed() => {}
        }
    }

    async fn read(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        if self.is_due {
            let report = self.report(self.after.0).await?;
            let progress = self.show(&report, page)?;
            if progress != Progress::Waits {
                return Ok(progress);
            }
        }
        self.show_text(page).await
    }
}

impl TaskEvents {
    async fn report(&self, after: u32) -> Result<TaskReport, Problem> {
        let _share = self.gateway.limits.stream_read(&self.tenant).await;
        let report = self.gateway.store.of(&self.tenant).task_page(self.task, after, PAGE).await?;
        report.ok_or_else(|| Problem::new(Code::TaskNotFound, format!("no task {} is on record", self.task)))
    }

    /// Begins after an event, which must be on record.
    async fn resume(&mut self, step: u32, index: usize, page: &mut Page) -> Result<Progress, Problem> {
        let report = self.report(step - 1).await?;
        let first = report.steps.first().filter(|first| first.step == step && index <= first.decisions.len());
        if first.is_none() {
            return Err(wrong(&format!("{step}.{index}"), IDS));
        }
        self.after = (step - 1, index + 1);
        self.show(&report, page)
    }

    /// Adds the steps of a report.
    fn show(&mut self, report: &TaskReport, page: &mut Page) -> Result<Progress, Problem> {
        for step in &report.steps {
            let skip = std::mem::take(&mut self.after.1);
            show_step(step, skip, &report.messages, page)?;
            self.after.0 = step.step;
            self.turn.follow(step);
        }
        if report.more {
            return Ok(Progress::More);
        }
        self.is_due = false;
        if report.task.state.is_terminal() {
            page.event(Some(END), END, &report.task)?;
            return Ok(Progress::Ended);
        }
        if self.live.is_none() {
            self.live = Some(self.gateway.streams.live.follow(&self.gateway.queue, self.waiter.subject()));
        }
        Ok(Progress::Waits)
    }

    /// Adds what the model wrote since, if that is known and of the turn that is shown last.
    async fn show_text(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        let Some(written) = self.live.as_ref().and_then(Follower::turn) else { return Ok(Progress::Waits) };
        if self.turn == Turn::Unknown {
            self.turn = self.newest_turn().await?;
        }
        if self.turn.is_before(written) && self.looked_for < written {
            // The step that asked for it is on record, and shown first.
            self.looked_for = written;
            let report = self.report(self.after.0).await?;
            let progress = self.show(&report, page)?;
            if progress != Progress::Waits {
                return Ok(progress);
            }
        }
        if let (true, Some(live)) = (self.turn == Turn::Open(written), &self.live) {
            live.show(&mut self.sent, page)?;
        }
        Ok(Progress::Waits)
    }

    async fn newest_turn(&self) -> Result<Turn, Problem> {
        let _share = self.gateway.limits.stream_read(&self.tenant).await;
        let newest = self.gateway.store.of(&self.tenant).newest_turn(self.task).await?;
        let (turn, is_open) = newest.unwrap_or((0, false));
        Ok(if is_open { Turn::Open(turn) } else { Turn::Over(turn) })
    }
}

impl Turn {
    const fn is_before(self, written: u32) -> bool {
        matches!(self, Self::Open(turn) | Self::Over(turn) if turn < written)
    }

    fn follow(&mut self, step: &TaskStep) {
        if let TaskInput::TurnEnded { turn, .. } = step.input {
            *self = Self::Over(turn);
        }
        for decision in &step.decisions {
            match decision {
                TaskDecision::Turn { turn, .. } => *self = Self::Open(*turn),
                TaskDecision::Ended { .. } => *self = Self::Over(u32::MAX),
                _ => {}
            }
        }
    }
}

/// Adds the events of a step but the first `skip`.
fn show_step(step: &TaskStep, skip: usize, messages: &[StoredMessage], page: &mut Page) -> Result<(), Problem> {
    for index in skip..=step.decisions.len() {
        let id = format!("{}.{index}", step.step);
        let decision = index.checked_sub(1).and_then(|index| step.decisions.get(index));
        if let Some(TaskDecision::Message { seq }) = decision
            && let Some(message) = messages.iter().find(|message| message.seq == *seq)
        {
            page.event(Some(&id), "message", message)?;
            continue;
        }
        let (name, data) = match decision {
            Some(decision) => of_step(step, decision, "decision")?,
            None => of_step(step, &step.input, "event")?,
        };
        page.event(Some(&id), &name, &data)?;
    }
    Ok(())
}

/// Writes what happened, or a decision: its name, and its fields with the step and the time.
fn of_step(step: &TaskStep, what: &impl Serialize, tag: &str) -> Result<(String, Map<String, Value>), Problem> {
    let bug = || Problem::new(Code::Internal, format!("step {} cannot be written", step.step));
    let Ok(Value::Object(mut fields)) = serde_json::to_value(what) else { return Err(bug()) };
    let Some(Value::String(name)) = fields.remove(tag) else { return Err(bug()) };
    // What the engine remembers, in its own form.
    fields.remove("carried");
    fields.insert("step".to_owned(), step.step.into());
    fields.insert("at".to_owned(), serde_json::to_value(step.at).map_err(|_| bug())?);
    Ok((name, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_this_form_are_positions() {
        assert_eq!((of_id("3.0"), of_id("12.7")), (Some((3, 0)), Some((12, 7))));
        for id in ["", "3", "0.1", "03.1", "+3.1", "3.-1", "3.1.1", "End", "99999999999.1", "3."] {
            assert_eq!(of_id(id), None, "{id}");
        }
    }
}
