//! A dispatcher advances a task: the engine plans from what is in the tables, and one transaction writes the result.

use std::collections::HashMap;

use redial_engine::{
    call::submitted,
    task::{Known, Needs, PlanContext, Planning, plan},
    view::read,
};
use redial_proto::{CallId, CallState, Failure, Language, Message, Role, StoredMessage, TaskState, ToolEffect};
use redial_records::{
    Effect, EndedCall, InboxItem, NewCall, StartInfo, TaskCall, TaskRecord, TaskStatus, TaskTransition, TurnOnRecord,
};
use uuid::Uuid;

use super::{
    clock::{since, time},
    ids::{CallNo, TENANT, TOOLS, ToolNo, call_id, consumer_name, consumer_no, task_id, task_no},
    invent,
    state::World,
    tables::{CallRow, Decision, InboxRow, TaskRow},
    transaction::CommitOutcome,
};
use crate::{Invariant, Mutation, random::mix};

impl World {
    pub(super) fn tasks_to_advance(&self) -> usize {
        if !self.postgres_up || self.tables.tasks.is_empty() {
            return 0;
        }
        (0..self.tables.tasks.len()).filter(|task| self.is_task_due(*task)).count()
    }

    fn is_task_due(&self, task: usize) -> bool {
        let row = &self.tables.tasks[task];
        let has_items = || self.tables.inbox.iter().any(|item| usize::from(item.task) == task);
        row.exists && (row.wake_at.is_some_and(|at| at <= self.now) || has_items())
    }

    pub(super) fn next_task(&mut self, n: usize, pick: u32) {
        let d = (pick >> 16) as usize % self.dispatchers.len();
        if let Some(task) = (0..self.tables.tasks.len()).filter(|task| self.is_task_due(*task)).nth(n) {
            self.advance_task(d, task, pick);
        }
    }

    /// Plans a task and writes the transition in one transaction, then carries out the effects.
    fn advance_task(&mut self, d: usize, task: usize, pick: u32) {
        let commit = CommitOutcome::of(pick);
        let overtaken = self.unlocked.take();
        if !commit.is_committed() || !self.postgres_up {
            // The transaction is not committed, so the plan would have no consequence.
            self.transaction(d, commit, |_| ());
            return;
        }
        let Some(mut decision) = self.decide(task) else { return };
        self.admit_calls(d, &mut decision.transition);
        if self.has(Mutation::TaskWithoutLock) && pick & 3 == 3 {
            self.unlocked = Some(decision);
            return;
        }
        if self.transaction(d, commit, |world| world.write(&decision)).is_some() {
            self.carry_out_task(d, decision);
        } else {
            for call in &decision.transition.calls {
                let (Some(consumer), Some(of)) = (&call.consumer, call.task) else { continue };
                let tool = TOOLS[usize::from(self.tool_of(of))];
                self.dispatchers[d].feeder.windows.arrived(consumer, tool);
            }
        }
        if let Some(overtaken) = overtaken {
            self.write(&overtaken);
            self.carry_out_task(d, overtaken);
        }
    }

    /// Chooses where the jobs of new calls are published.
    fn admit_calls(&mut self, d: usize, transition: &mut TaskTransition) {
        for call in transition.calls.iter_mut().filter(|call| call.refusal.is_none() && !call.is_of_client()) {
            let Some(of) = call.task else { continue };
            call.consumer = self.admit(d, self.tool_of(of)).map(consumer_name);
        }
    }

    /// The tool of a call of a task, as dispatchers and workers know it.
    fn tool_of(&self, call: TaskCall) -> ToolNo {
        (self.seed_of(call) / 4 % TOOLS.len()) as ToolNo
    }

    fn seed_of(&self, TaskCall { turn, call_index, .. }: TaskCall) -> usize {
        mix(self.setup.seed ^ u64::from(turn) << 8 ^ u64::from(call_index)) as usize
    }

    // ---- Planning ----

    /// Plans a task; `None` if it has ended.
    fn decide(&mut self, task: usize) -> Option<Decision> {
        let number = task as u8;
        let inbox = &self.tables.inbox;
        let items: Vec<InboxRow> = inbox.iter().filter(|item| item.task == number).cloned().collect();
        let state = self.tables.tasks[task].state;
        let cancelled = items.iter().any(|row| matches!(row.item, InboxItem::Cancel));
        let starts = state == TaskState::Waiting && !cancelled && self.may_start(task);
        if state.is_terminal() {
            self.clear_inbox(&items);
            return None;
        }
        let record = self.record(task, &items, starts);
        let received = items.iter().map(|item| item.id).collect();
        Some(Decision { task: number, transition: self.plan_task(record), received })
    }

    /// Runs the engine's planner and loads what it asks for from the conversation.
    fn plan_task(&mut self, record: TaskRecord) -> TaskTransition {
        let mut ids = self.ids;
        let mut new_id = || {
            ids += 1;
            CallId(Uuid::from_u128(ids))
        };
        let mut context = PlanContext::new(&self.tools, &mut new_id);
        let mut planning = plan(record, &mut context);
        let planned = loop {
            let paused = match planning {
                Planning::Done(planned) => break planned,
                Planning::Paused(paused) => paused,
                // The simulation has one version.
                Planning::Unreadable(why) => unreachable!("a task cannot be read: {why}"),
            };
            let known = match paused.needs() {
                Needs::Conversation(reach) => {
                    let mut messages = self.tables.messages.clone();
                    messages.sort_by_key(|stored| stored.seq);
                    Known::Conversation(read(&messages, reach))
                }
                Needs::Results(calls) => Known::Results(self.results(calls)),
            };
            planning = paused.resume(known, &mut context);
        };
        self.ids = ids;
        if let Some(bug) = planned.bugs.first() {
            self.report_violation(Invariant::OneAnswerPerCall, || bug.clone());
        }
        planned.transition
    }

    fn record(&self, task: usize, items: &[InboxRow], starts: bool) -> TaskRecord {
        let row = &self.tables.tasks[task];
        TaskRecord {
            id: task_id(task as u8),
            tenant: TENANT.to_owned(),
            conversation: String::new(),
            state: row.state,
            language: Language::En,
            spec: self.agent().to_owned(),
            input: invent::INPUT.to_owned(),
            progress: row.progress.clone(),
            last_step: row.last_step,
            submitted_at: time(row.submitted_at),
            wake_at: row.wake_at.map(time),
            traceparent: None,
            read_at: time(self.now),
            inbox: items.iter().map(|row| row.item.clone()).collect(),
            start: starts.then(|| self.start_info(task)),
        }
    }

    /// The agent of every task, as JSON.
    pub(super) fn agent(&self) -> &str {
        &self.agents[usize::from(self.setup.seed >> 63 == 1)]
    }

    fn start_info(&self, task: usize) -> StartInfo {
        let messages = &self.tables.messages;
        let system =
            messages.iter().filter(|stored| stored.message.role == Role::System).max_by_key(|stored| stored.seq);
        let before = self.tables.tasks[..task].iter().rev().find(|row| row.last_step > 0);
        StartInfo {
            next_seq: messages.iter().map(|stored| stored.seq).max().unwrap_or(0) + 1,
            system: system.map(|stored| stored.message.content.clone()),
            carried: before.and_then(|row| row.progress.clone()),
        }
    }

    /// What the task of an ended call learns about it.
    pub(super) fn ended_call(&self, call: CallNo, TaskCall { task, turn, call_index }: TaskCall) -> EndedCall {
        let row = self.row(call);
        let output = || match call_index {
            0 => invent::reply(mix(self.setup.seed ^ u64::from(task_no(task)) << 32 ^ u64::from(turn))),
            _ => invent::output(call),
        };
        let request = self.tables.requests.iter().find(|(id, _)| *id == row.id);
        let unknown = row.state == CallState::Unknown;
        EndedCall {
            call: row.id,
            turn,
            call_index,
            state: row.state,
            failure: row.class.map(|class| Failure { effect_possible: unknown, ..Failure::new(class, "it failed") }),
            output: (row.state == CallState::Succeeded).then(output),
            arguments: request.map(|(_, request)| request.clone()),
        }
    }

    fn results(&self, calls: &[String]) -> HashMap<String, String> {
        let messages = self.tables.messages.iter().map(|stored| &stored.message);
        let answer = |message: &Message| Some((message.call_id.clone()?, message.content.clone()));
        messages.filter_map(answer).filter(|(call, _)| calls.contains(call)).collect()
    }

    /// No task of the conversation runs, and no earlier one waits.
    fn may_start(&self, task: usize) -> bool {
        let before = |n: usize, row: &TaskRow| row.state == TaskState::Waiting && n < task;
        let mut others = self.tables.tasks.iter().enumerate().filter(|(n, row)| *n != task && row.exists);
        self.has(Mutation::TaskStartsOutOfTurn)
            || !others.any(|(n, row)| row.state == TaskState::Running || before(n, row))
    }

    /// Clears the inbox of an ended task, which passes a start that it received on to the next task.
    fn clear_inbox(&mut self, items: &[InboxRow]) {
        self.tables.inbox.retain(|row| !items.iter().any(|item| item.id == row.id));
        if items.iter().any(|row| matches!(row.item, InboxItem::Start)) {
            self.wake_next();
        }
    }

    // ---- Writing ----

    fn write(&mut self, decision: &Decision) {
        let (task, transition) = (usize::from(decision.task), &decision.transition);
        self.write_messages(transition);
        let row = &mut self.tables.tasks[task];
        let state = transition.status.state();
        row.state = state;
        row.progress = Some(transition.progress.clone());
        row.wake_at = match transition.status {
            TaskStatus::Waiting { wake_at } => Some(since(wake_at)),
            TaskStatus::Running { wake_at } => wake_at.map(since),
            TaskStatus::Ended(_) => None,
        };
        row.last_step = transition.steps.last().map_or(transition.last_step, |step| step.step);
        self.tables.steps.extend(transition.steps.iter().map(|step| (decision.task, step.clone())));
        self.tables.inbox.retain(|item| !decision.received.contains(&item.id));
        for call in transition.calls.iter().filter(|call| call.refusal.is_none()) {
            self.write_call(call);
            if call.task.is_some_and(|of| of.call_index == 0) {
                self.tables.requests.push((call.id, without_messages(&call.arguments, transition)));
            }
        }
        if transition.starts && self.has_other_running(task) {
            self.report_violation(Invariant::OneTaskAtATime, || format!("task {task} starts while another one runs"));
        }
        if state.is_terminal() {
            self.wake_next();
        }
    }

    fn write_messages(&mut self, transition: &TaskTransition) {
        for (seq, message) in &transition.messages {
            if self.tables.messages.iter().any(|stored| stored.seq == *seq) {
                self.report_violation(Invariant::MessagesWithoutGaps, || format!("message {seq} is written twice"));
            }
            let (task, at) = (transition.task, time(self.now));
            self.tables.messages.push(StoredMessage { seq: *seq, task, at, message: message.clone() });
        }
    }

    fn write_call(&mut self, call: &NewCall) {
        let Some(task_call @ TaskCall { call_index, .. }) = call.task else { return };
        if self.tables.calls.iter().any(|row| row.task == Some(task_call)) {
            return self.report_violation(Invariant::OneAnswerPerCall, || format!("{task_call:?} is written twice"));
        }
        let effect =
            if call_index == 0 { ToolEffect::Idempotent } else { ToolEffect::ALL[self.seed_of(task_call) % 4] };
        let new = CallRow::new(self.tool_of(task_call), effect, 3, 3_600_000);
        let number = self.tables.calls.len() as CallNo;
        self.tables.calls.push(CallRow { task: Some(task_call), id: call.id, ..new });
        self.insert(number, call.consumer.as_deref().map(consumer_no));
        if call.is_of_client() {
            self.ask_client(number, call.deadline_ms);
        }
    }

    /// `submit.sql`: a call that its client serves waits for the answer, and has no job.
    fn ask_client(&mut self, call: CallNo, deadline_ms: u64) {
        let now = self.now;
        let row = self.row_mut(call);
        (row.state, row.of_client, row.backlog) = (CallState::ClientWait, true, None);
        (row.effect, row.max_attempts) = (ToolEffect::Unsafe, 1);
        row.deadline_at = now + deadline_ms.cast_signed();
        row.wake_at = row.deadline_at;
    }

    fn has_other_running(&self, task: usize) -> bool {
        let mut others = self.tables.tasks.iter().enumerate().filter(|(n, _)| *n != task);
        others.any(|(_, row)| row.state == TaskState::Running)
    }

    /// Notifies the next task of the conversation that it may start.
    fn wake_next(&mut self) {
        let next = self.tables.tasks.iter().position(|row| row.exists && row.state == TaskState::Waiting);
        if let Some(next) = next {
            self.tables.add_to_inbox(next as u8, InboxItem::Start);
        }
    }

    /// Carries out the effects of a committed transition. They name calls by the ids that the planner was given.
    fn carry_out_task(&mut self, d: usize, decision: Decision) {
        let state = decision.transition.status.state();
        self.log(|| format!("dispatcher {d} advances task {}: it is {state}", decision.task));
        let TaskTransition { calls, effects, .. } = decision.transition;
        for effect in calls.iter().flat_map(submitted).chain(effects) {
            match effect {
                Effect::PublishJob(mut job) => {
                    let Some(call) = self.written_call(job.job.call) else { continue };
                    if let Some(TaskCall { turn, call_index, .. }) = self.row(call).task {
                        self.log(|| format!("    its call {call} (turn {turn}, call index {call_index}) is ready"));
                    }
                    job.job.call = call_id(call);
                    self.carry_out(d, Effect::PublishJob(job));
                }
                Effect::CancelCall(id) => {
                    let Some(call) = self.written_call(id) else { continue };
                    self.carry_out(d, Effect::CancelCall(call_id(call)));
                }
                other => self.carry_out(d, other),
            }
        }
    }

    fn written_call(&self, id: CallId) -> Option<CallNo> {
        self.tables.calls.iter().position(|row| row.id == id).map(|call| call as CallNo)
    }
}

/// `leave_out_messages` of the store: a request to a model without its messages, as an end of its call is read.
fn without_messages(arguments: &str, transition: &TaskTransition) -> String {
    let turn = TurnOnRecord::read(arguments).expect("the simulation has one version");
    let offered = transition.offers.iter().find(|offer| Some(offer.hash.as_str()) == turn.tools());
    turn.without_messages(offered.map(|offer| offer.tools.as_str())).unwrap_or_else(|_| arguments.to_owned())
}
