//! A dispatcher advances a task: the engine plans from what is on record, and one transaction writes the result.

use std::collections::HashMap;

use redial_engine::{
    call::submitted,
    task::{Known, Needs, PlanContext, Planning, plan},
    view::read,
};
use redial_proto::{CallState, Failure, Language, Message, Role, StoredMessage, TaskState, ToolEffect};
use redial_records::{
    EndedCall, InboxItem, NewCall, StartInfo, TaskCall, TaskRecord, TaskStatus, TaskTransition, TurnOnRecord,
};

use super::{
    AGENTS, CONSUMER, TENANTS, TOOL, TOOLS, World, call_id,
    dispatcher::CommitOutcome,
    invent,
    tables::{CallRow, InboxRow, TaskRow},
    task_id, task_no,
};
use crate::{Invariant, Mutation, random::mix};

impl World {
    pub(super) fn is_task_due(&self, task: usize) -> bool {
        let row = &self.tasks[task];
        let has_items = || self.inbox.iter().any(|item| item.task == task);
        self.postgres_up && row.exists && (row.wake_at.is_some_and(|at| at <= self.now) || has_items())
    }

    /// Plans a task and writes the transition in one transaction, then carries out the effects.
    pub(super) fn advance_task(&mut self, task: usize, pick: u32) {
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let written = self.transaction(d, CommitOutcome::of(pick), |world| world.write_next(task));
        if let Some(Some(transition)) = written {
            self.log(|| format!("dispatcher {d} advances task {task}: it is {}", transition.status.state()));
            for effect in transition.calls.iter().flat_map(submitted).chain(transition.effects) {
                self.carry_out(d, effect);
            }
        }
    }

    /// Writes the next transition; `None` if the task has ended.
    fn write_next(&mut self, task: usize) -> Option<TaskTransition> {
        let items: Vec<InboxRow> = self.inbox.iter().filter(|item| item.task == task).cloned().collect();
        let state = self.tasks[task].state;
        if state.is_terminal() {
            self.clear_inbox(&items);
            return None;
        }
        let cancelled = items.iter().any(|row| matches!(row.item, InboxItem::Cancel));
        let starts = state == TaskState::Waiting && !cancelled && self.may_start(task);
        let mut transition = self.plan_task(self.record(task, &items, starts));
        // Workers know one tool. If NATS is up, the job of a new call is published at once.
        for call in transition.calls.iter_mut().filter(|call| call.refusal.is_none()) {
            TOOL.clone_into(&mut call.tool);
            call.consumer = self.nats_up.then(|| CONSUMER.to_owned());
        }
        self.write(task, &transition, &items);
        Some(transition)
    }

    fn seed_of(&self, TaskCall { turn, call_index, .. }: TaskCall) -> usize {
        mix(self.setup.seed ^ u64::from(turn) << 8 ^ u64::from(call_index)) as usize
    }

    // ---- Planning ----

    /// Runs the engine's planner and loads what it asks for from the conversation.
    fn plan_task(&mut self, record: TaskRecord) -> TaskTransition {
        let mut numbers = self.numbers;
        let mut new_id = || {
            numbers += 1;
            call_id(numbers.into())
        };
        let mut context = PlanContext::new(&TOOLS, &mut new_id);
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
                    let mut messages = self.messages.clone();
                    messages.sort_by_key(|stored| stored.seq);
                    Known::Conversation(read(&messages, reach))
                }
                Needs::Results(calls) => Known::Results(self.results(calls)),
            };
            planning = paused.resume(known, &mut context);
        };
        self.numbers = numbers;
        if let Some(bug) = planned.bugs.first() {
            self.report_violation(Invariant::OneAnswerPerCall, || bug.clone());
        }
        planned.transition
    }

    fn record(&self, task: usize, items: &[InboxRow], starts: bool) -> TaskRecord {
        let row = &self.tasks[task];
        TaskRecord {
            id: task_id(task),
            tenant: TENANTS[0].to_owned(),
            conversation: String::new(),
            state: row.state,
            language: Language::En,
            spec: self.agent().to_owned(),
            input: invent::INPUT.to_owned(),
            progress: row.progress.clone(),
            last_step: row.last_step,
            submitted_at: row.submitted_at,
            wake_at: row.wake_at,
            traceparent: None,
            read_at: self.now,
            inbox: items.iter().map(|row| row.item.clone()).collect(),
            start: starts.then(|| self.start_info(task)),
        }
    }

    /// Returns the agent of every task, as JSON.
    pub(super) fn agent(&self) -> &str {
        &AGENTS[usize::from(self.setup.seed >> 63 == 1)]
    }

    fn start_info(&self, task: usize) -> StartInfo {
        let of_system = self.messages.iter().filter(|stored| stored.message.role == Role::System);
        let before = self.tasks[..task].iter().rev().find(|row| row.last_step > 0);
        StartInfo {
            next_seq: self.messages.iter().map(|stored| stored.seq).max().unwrap_or(0) + 1,
            system: of_system.max_by_key(|stored| stored.seq).map(|stored| stored.message.content.clone()),
            carried: before.and_then(|row| row.progress.clone()),
        }
    }

    /// Returns what the task of an ended call learns about it.
    pub(super) fn ended_call(&self, row: &CallRow, TaskCall { task, turn, call_index }: TaskCall) -> EndedCall {
        let call = row.record.id;
        let output = || match call_index {
            0 => invent::reply(mix(self.setup.seed ^ (task_no(task) as u64) << 32 ^ u64::from(turn))),
            _ => invent::output(call.0.as_u128()),
        };
        let request = self.requests.iter().find(|(id, _)| *id == call);
        let (state, unknown) = (row.record.state, row.record.state == CallState::Unknown);
        EndedCall {
            call,
            turn,
            call_index,
            state,
            failure: row.class.map(|class| Failure { effect_possible: unknown, ..Failure::new(class, "it failed") }),
            output: (state == CallState::Succeeded).then(output),
            arguments: request.map(|(_, request)| request.clone()),
        }
    }

    fn results(&self, calls: &[String]) -> HashMap<String, String> {
        let messages = self.messages.iter().map(|stored| &stored.message);
        let answer = |message: &Message| Some((message.call_id.clone()?, message.content.clone()));
        messages.filter_map(answer).filter(|(call, _)| calls.contains(call)).collect()
    }

    /// True if no task of the conversation runs, and no earlier one waits.
    fn may_start(&self, task: usize) -> bool {
        let before = |n: usize, row: &TaskRow| row.state == TaskState::Waiting && n < task;
        let mut others = self.tasks.iter().enumerate().filter(|(n, row)| *n != task && row.exists);
        self.has(Mutation::TaskStartsOutOfTurn)
            || !others.any(|(n, row)| row.state == TaskState::Running || before(n, row))
    }

    /// Clears the inbox of an ended task, which passes a start that it received on to the next task.
    fn clear_inbox(&mut self, items: &[InboxRow]) {
        self.inbox.retain(|row| !items.iter().any(|item| item.id == row.id));
        if items.iter().any(|row| matches!(row.item, InboxItem::Start)) {
            self.wake_next();
        }
    }

    // ---- Writing ----

    fn write(&mut self, task: usize, transition: &TaskTransition, received: &[InboxRow]) {
        self.write_messages(transition);
        let row = &mut self.tasks[task];
        let state = transition.status.state();
        row.state = state;
        row.progress = Some(transition.progress.clone());
        row.wake_at = match transition.status {
            TaskStatus::Waiting { wake_at } => Some(wake_at),
            TaskStatus::Running { wake_at } => wake_at,
            TaskStatus::Ended(_) => None,
        };
        row.last_step = transition.steps.last().map_or(transition.last_step, |step| step.step);
        self.recorded_steps.extend(transition.steps.iter().map(|step| (task, step.clone())));
        self.inbox.retain(|item| !received.iter().any(|one| one.id == item.id));
        for call in transition.calls.iter().filter(|call| call.refusal.is_none()) {
            self.write_call(call);
            if call.task.is_some_and(|of| of.call_index == 0) {
                self.requests.push((call.id, without_messages(&call.arguments, transition)));
            }
        }
        let mut others = self.tasks.iter().enumerate().filter(|(n, _)| *n != task);
        if transition.starts && others.any(|(_, row)| row.state == TaskState::Running) {
            self.report_violation(Invariant::OneTaskAtATime, || format!("task {task} starts while another one runs"));
        }
        if state.is_terminal() {
            self.wake_next();
        }
    }

    fn write_messages(&mut self, transition: &TaskTransition) {
        for (seq, message) in &transition.messages {
            if self.messages.iter().any(|stored| stored.seq == *seq) {
                self.report_violation(Invariant::MessagesWithoutGaps, || format!("message {seq} is written twice"));
            }
            let (task, at) = (transition.task, self.now);
            self.messages.push(StoredMessage { seq: *seq, task, at, message: message.clone() });
        }
    }

    fn write_call(&mut self, call: &NewCall) {
        let Some(of) = call.task else { return };
        if self.calls.iter().any(|row| row.task == Some(of)) {
            return self.report_violation(Invariant::OneAnswerPerCall, || format!("{of:?} is written twice"));
        }
        let (effect, attempts) = match of.call_index {
            0 => (ToolEffect::Idempotent, 3),
            _ => (ToolEffect::ALL[self.seed_of(of) % 4], 3),
        };
        let mut row = CallRow::new(call.id, effect, attempts, 3_600_000);
        row.task = Some(of);
        row.record.pool.clone_from(&call.pool);
        self.calls.push(row);
        self.insert(call.id, call.consumer.is_some());
    }

    /// Notifies the next task of the conversation that it may start.
    fn wake_next(&mut self) {
        let next = self.tasks.iter().position(|row| row.exists && row.state == TaskState::Waiting);
        if let Some(next) = next {
            self.add_to_inbox(next, InboxItem::Start);
        }
    }
}

/// Returns a request to a model without its messages, as an end of its call is read.
fn without_messages(arguments: &str, transition: &TaskTransition) -> String {
    let Ok(turn) = TurnOnRecord::read(arguments) else { return arguments.to_owned() };
    let offered = transition.offers.iter().find(|offer| Some(offer.hash.as_str()) == turn.tools());
    turn.without_messages(offered.map(|offer| offer.tools.as_str())).unwrap_or_else(|_| arguments.to_owned())
}
