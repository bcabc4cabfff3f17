//! Reads a response from the record, and what is added to it.

use redial_proto::{CallState, Code, TaskDecision, TaskView, limits};
use redial_store::FunctionCall;
use serde_json::Value;

use super::{ids::ResponseId, record::Record};
use crate::{
    events::Progress, gateway::Shared, hub::Waiter, identity::Identity, problem::Problem, watch::task_subject,
};

/// Bytes of steps and messages that are read at once for a stream, about.
const PAGE: usize = 64 * 1024;

pub(crate) struct Follow {
    gateway: Shared,
    who: Identity,
    id: ResponseId,
    record: Record,
    step: u32,
    has_more: bool,
    waiter: Waiter,
}

impl Follow {
    /// Reads what is on record up to where the response begins. Fails if the tenant has no such response.
    pub(crate) async fn begin(gateway: &Shared, who: &Identity, id: ResponseId) -> Result<Self, Problem> {
        let waiter = gateway.hub.wait_for(task_subject(who, id.task));
        let task = gateway.store.of(&who.tenant).task(id.task).await?.ok_or_else(|| not_found(id))?;
        let record = Record::new(id, task);
        let (gateway, who) = (gateway.clone(), who.clone());
        let mut follow = Self { gateway, who, id, record, step: 0, has_more: true, waiter };
        follow.read_page().await?;
        while follow.has_more && !follow.record.has_begun() {
            follow.read_page().await?;
        }
        Ok(follow)
    }

    /// Reads all that was added since the last time. The events of it are dropped.
    pub(crate) async fn read(&mut self) -> Result<(), Problem> {
        loop {
            self.read_bytes(limits::MAX_MESSAGE).await?;
            self.record.take_events();
            if !self.has_more {
                return Ok(());
            }
        }
    }

    /// Reads a page of what was added since the last time.
    pub(crate) async fn read_page(&mut self) -> Result<(), Problem> {
        self.read_bytes(PAGE).await
    }

    async fn read_bytes(&mut self, about: usize) -> Result<(), Problem> {
        let gateway = self.gateway.clone();
        let _share = gateway.limits.stream_read(&self.who.tenant).await;
        let store = gateway.store.of(&self.who.tenant);
        let report = store.task_page(self.id.task, self.step, about).await?;
        let report = report.ok_or_else(|| not_found(self.id))?;
        // The end may have come between the two reads of the report.
        let mut decisions = report.steps.iter().flat_map(|step| &step.decisions);
        let has_end = decisions.any(|one| matches!(one, TaskDecision::Ended { .. }));
        let task = if has_end && !report.task.state.is_terminal() {
            store.task(self.id.task).await?.ok_or_else(|| not_found(self.id))?
        } else {
            report.task
        };
        self.record.update(task);
        if self.record.lacks_functions(&report.steps) {
            let functions = store.functions_of(self.id.task).await?;
            self.record.know_functions(functions.iter().map(|one| ((one.turn, one.call_index), one.call)));
        }
        self.step = report.steps.last().map_or(self.step, |step| step.step);
        self.record.add(&report.steps, report.messages);
        if !report.more {
            self.record.end_with_task();
        }
        self.has_more = report.more && !self.record.is_over();
        Ok(())
    }

    /// Returns how far a stream of it is that has shown all that was read.
    pub(crate) const fn progress(&self) -> Progress {
        match (self.record.is_over(), self.has_more) {
            (true, _) => Progress::Ended,
            (false, true) => Progress::More,
            (false, false) => Progress::Waits,
        }
    }

    pub(crate) const fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        self.record.take_events()
    }

    /// Waits until something may have been added. Can be cancelled without loss.
    pub(crate) async fn changed(&mut self) {
        self.waiter.next().await;
    }

    /// Waits until nothing more happens to it. Fails if the gateway stops or the right of the user is lost first.
    pub(crate) async fn end(&mut self) -> Result<(), Problem> {
        while !self.record.is_over() {
            self.more().await?;
        }
        Ok(())
    }

    /// Waits until its task has ended, which may be after it.
    pub(crate) async fn end_of_task(&mut self) -> Result<(), Problem> {
        while !self.record.task().state.is_terminal() {
            self.more().await?;
        }
        Ok(())
    }

    async fn more(&mut self) -> Result<(), Problem> {
        tokio::select! {
            _ = self.waiter.next() => {}
            () = self.gateway.wait_is_over(&self.who) => {
                self.gateway.rights.check(&self.who)?;
                return Err(stopping(self.id));
            }
        }
        match self.read().await {
            // The next look may succeed.
            Err(problem) if problem.again().is_some() => Ok(()),
            read => read,
        }
    }

    /// Fails if the task has not got as far as this response: the client has to answer functions first.
    pub(crate) async fn must_exist(&self) -> Result<(), Problem> {
        let store = self.gateway.store.of(&self.who.tenant);
        if self.id.segment == 0 {
            return Ok(());
        }
        let functions = store.functions_of(self.id.task).await?;
        if self.record.has_begun() && self.id.segment <= Segments::of(&functions).last() {
            return Ok(());
        }
        Err(not_found(self.id))
    }
}

/// The segments of a task, from the calls of its functions.
pub(crate) struct Segments<'a> {
    functions: &'a [FunctionCall],
    turns: Vec<u32>,
}

impl<'a> Segments<'a> {
    pub(crate) fn of(functions: &'a [FunctionCall]) -> Self {
        let asked = functions.iter().filter(|one| one.state != CallState::Refused);
        let mut turns: Vec<u32> = asked.map(|one| one.turn).collect();
        turns.dedup();
        Self { functions, turns }
    }

    pub(crate) fn ended_by(&self, turn: u32) -> Option<u32> {
        self.turns.iter().position(|one| *one == turn).and_then(|n| u32::try_from(n).ok())
    }

    pub(crate) fn turn(&self, segment: u32) -> Option<u32> {
        self.turns.get(usize::try_from(segment).ok()?).copied()
    }

    pub(crate) fn last(&self) -> u32 {
        let ended = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        if self.waiting().next().is_some() { ended.saturating_sub(1) } else { ended }
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &'a FunctionCall> {
        self.functions.iter().filter(|one| one.state == CallState::ClientWait)
    }

    pub(crate) fn of_turn(&self, turn: u32) -> impl Iterator<Item = &'a FunctionCall> {
        self.functions.iter().filter(move |one| one.turn == turn && one.state != CallState::Refused)
    }
}

pub(crate) fn not_found(id: ResponseId) -> Problem {
    Problem::new(Code::TaskNotFound, format!("no response {id} is on record"))
}

/// Returns the error of a gateway that stops; the response goes on without it.
fn stopping(id: ResponseId) -> Problem {
    let message =
        format!("this gateway stops; the response {id} goes on: GET /v1/responses/{id} on another gateway shows it");
    Problem::new(Code::Unavailable, message)
}

pub(crate) async fn task_of(gateway: &Shared, who: &Identity, id: ResponseId) -> Result<TaskView, Problem> {
    gateway.store.of(&who.tenant).task(id.task).await?.ok_or_else(|| not_found(id))
}
