//! Tasks: what came in for one goes through the engine, and what that decides is written in one transaction.

use redial_engine::task::{Event, Step, Task, step};
use redial_proto::{CallState, Effect, Language, Message, TaskState};

use super::{
    World,
    database::Fate,
    dispatcher, invent,
    rows::{CallNo, Item, Ms, Place, Row, What, since, time},
};
use crate::{Invariant, Mutation, random::mix};

/// What is to be written about a task.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    task: u8,
    /// The last step that was on record.
    was_step: u32,
    after: Task,
    steps: u32,
    wake_at: Option<Ms>,
    messages: Vec<(u32, Message)>,
    calls: Vec<Row>,
    /// Calls to stop.
    cancel: Vec<Place>,
    /// Items of the inbox that are dealt with.
    received: Vec<u32>,
    starts: bool,
}

impl World {
    pub(super) fn tasks_to_advance(&self) -> usize {
        if !self.postgres_up || self.tables.tasks.is_empty() {
            return 0;
        }
        (0..self.tables.tasks.len()).filter(|task| self.is_task_due(*task)).count()
    }

    fn is_task_due(&self, task: usize) -> bool {
        let row = &self.tables.tasks[task];
        let came_in = || self.tables.inbox.iter().any(|item| usize::from(item.task) == task);
        row.exists && (row.wake_at.is_some_and(|at| at <= self.now) || came_in())
    }

    pub(super) fn next_task(&mut self, n: usize, pick: u32) {
        let d = (pick >> 16) as usize % self.dispatchers.len();
        if let Some(task) = (0..self.tables.tasks.len()).filter(|task| self.is_task_due(*task)).nth(n) {
            self.advance_task(d, task, pick);
        }
    }

    /// Locks a task, takes what came in, decides, writes: one transaction. Then jobs are published and calls cancelled.
    fn advance_task(&mut self, d: usize, task: usize, pick: u32) {
        let fate = Fate::of(pick);
        let overtaken = self.unlocked.take();
        if !fate.is_committed() || !self.postgres_up {
            // Nothing of it stays.
            self.transaction(d, fate, |_| ());
            return;
        }
        let Some(decision) = self.decide(task) else { return };
        if self.has(Mutation::TaskWithoutLock) && pick & 3 == 3 {
            self.unlocked = Some(decision);
            return;
        }
        if self.transaction(d, fate, |world| world.write(&decision)).is_some() {
            self.written(d, &decision);
        }
        if let Some(overtaken) = overtaken {
            self.write(&overtaken);
            self.written(d, &overtaken);
        }
    }

    // ---- Deciding ----

    /// What becomes of a task; `None` if it goes on waiting, or is over.
    fn decide(&mut self, task: usize) -> Option<Decision> {
        let number = task as u8;
        let inbox = &self.tables.inbox;
        let items: Vec<Item> = inbox.iter().filter(|item| item.task == number).copied().collect();
        let row = &self.tables.tasks[task];
        let (state, is_due) = (row.state, row.wake_at.is_some_and(|at| at <= self.now));
        let cancelled = items.iter().any(|item| item.what == What::Cancel);
        let starts = state == TaskState::Waiting && !cancelled && self.may_start(task);
        if state.is_terminal() || (state == TaskState::Waiting && !starts && !cancelled) {
            self.leave_waiting(task, &items);
            return None;
        }
        let mut decision = Decision {
            task: number,
            was_step: row.last_step,
            after: row.task.clone(),
            steps: 0,
            wake_at: None,
            messages: Vec::new(),
            calls: Vec::new(),
            cancel: Vec::new(),
            received: items.iter().map(|item| item.id).collect(),
            starts,
        };
        if starts {
            let started = self.started(task);
            self.feed(&mut decision, started);
        }
        for item in items {
            if let Some(event) = self.event(number, item.what) {
                self.feed(&mut decision, event);
            }
        }
        if is_due && state == TaskState::Running {
            self.feed(&mut decision, Event::Woken);
        }
        Some(decision)
    }

    /// No task of the conversation runs, and no older one waits.
    fn may_start(&self, task: usize) -> bool {
        let before = |n: usize, row: &super::TaskRow| row.state == TaskState::Waiting && n < task;
        let mut others = self.tables.tasks.iter().enumerate().filter(|(n, row)| *n != task && row.exists);
        self.has(Mutation::TaskStartsOutOfTurn)
            || !others.any(|(n, row)| row.state == TaskState::Running || before(n, row))
    }

    /// A task that has to wait is looked at again; one that is over is left alone, and so is its inbox from now on. Its
    /// turn goes to the next.
    fn leave_waiting(&mut self, task: usize, items: &[Item]) {
        let row = &mut self.tables.tasks[task];
        let over = row.state.is_terminal();
        row.wake_at = (!over).then_some(self.now + 1_000);
        self.tables.inbox.retain(|item| !items.contains(item));
        if over && items.iter().any(|item| item.what == What::Start) {
            self.tell_next();
        }
    }

    fn started(&self, task: usize) -> Event {
        let last = self.tables.messages.iter().map(|(seq, _)| *seq).max().unwrap_or(0);
        let before = (0..task).rev().find(|n| self.tables.tasks[*n].last_step > 0);
        let carried = before.map_or(serde_json::Value::Null, |n| self.tables.tasks[n].task.carried());
        Event::Started { input: "please".to_owned(), first_seq: last + 1, system: last == 0, carried }
    }

    fn event(&self, task: u8, what: What) -> Option<Event> {
        Some(match what {
            What::Start => return None,
            What::Cancel => Event::CancelRequested,
            What::Retrying => Event::Retrying,
            What::Ended(call) => {
                let row = self.row(call);
                let place = row.place?;
                let failure = || {
                    invent::failed(
                        row.class.unwrap_or(redial_proto::ErrorClass::Internal),
                        row.state == CallState::Unknown,
                    )
                };
                let succeeded = row.state == CallState::Succeeded;
                let (turn, call_index) = (place.turn, place.call_index);
                if call_index == 0 {
                    let seed = mix(self.setup.seed ^ u64::from(task) << 32 ^ u64::from(turn));
                    let end = if succeeded { Ok(invent::reply(seed)) } else { Err(failure()) };
                    Event::TurnEnded { turn, end }
                } else {
                    let end = if succeeded { Ok(format!("{{\"n\":{call}}}")) } else { Err(failure()) };
                    Event::CallEnded { turn, call_index, end }
                }
            }
        })
    }

    fn feed(&mut self, decision: &mut Decision, event: Event) {
        let woken = matches!(event, Event::Woken);
        let agent = &self.agents[usize::from(self.setup.seed >> 63 == 1)];
        let Step { decisions, messages, calls, turn, cancel, wake_at, .. } =
            step(&mut decision.after, agent, Language::En, event, time(self.now));
        decision.steps += u32::from(!woken || !decisions.is_empty());
        decision.messages.extend(messages);
        decision.wake_at = wake_at.map(since);
        let place = |turn, call_index| Place { task: decision.task, turn, call_index };
        decision.cancel.extend(cancel.iter().map(|(turn, call_index)| place(*turn, *call_index)));
        let wanted = calls.iter().filter(|call| call.refusal.is_none()).map(|call| place(call.turn, call.call_index));
        let wanted: Vec<Place> = wanted.chain(turn.map(|turn| place(turn.turn, 0))).collect();
        decision.calls.extend(wanted.into_iter().map(|place| self.new_call(place)));
    }

    fn new_call(&self, place: Place) -> Row {
        let number = mix(self.setup.seed ^ u64::from(place.turn) << 8 ^ u64::from(place.call_index)) as usize;
        let effect = if place.call_index == 0 { Effect::Idempotent } else { Effect::ALL[number % 4] };
        Row { place: Some(place), ..Row::new(effect, 3, 3_600_000) }
    }

    // ---- Writing ----

    fn write(&mut self, decision: &Decision) {
        let task = usize::from(decision.task);
        self.write_messages(decision);
        let row = &mut self.tables.tasks[task];
        let state = decision.after.state();
        row.state = state;
        row.task.clone_from(&decision.after);
        row.wake_at = decision.wake_at.or((state == TaskState::Waiting).then_some(self.now + 1_000));
        row.last_step = decision.was_step + decision.steps;
        for n in 1..=decision.steps {
            self.tables.steps.push((decision.task, decision.was_step + n));
        }
        self.tables.inbox.retain(|item| !decision.received.contains(&item.id));
        for call in &decision.calls {
            self.write_call(*call);
        }
        if decision.starts && self.has_other_running(task) {
            self.accuse(Invariant::OneTaskAtATime, || format!("task {task} starts beside another one"));
        }
        if state.is_terminal() {
            self.tell_next();
        }
    }

    fn write_messages(&mut self, decision: &Decision) {
        for (seq, message) in &decision.messages {
            if self.tables.messages.iter().any(|(there, _)| there == seq) {
                self.accuse(Invariant::MessagesWithoutGaps, || format!("message {seq} is written twice"));
            }
            self.tables.messages.push((*seq, message.clone()));
        }
    }

    fn write_call(&mut self, call: Row) {
        if self.tables.calls.iter().any(|row| row.place == call.place) {
            return self.accuse(Invariant::OneAnswerPerCall, || format!("{:?} is written twice", call.place));
        }
        let number = self.tables.calls.len() as CallNo;
        self.tables.calls.push(call);
        self.insert(number);
    }

    fn has_other_running(&self, task: usize) -> bool {
        let mut others = self.tables.tasks.iter().enumerate().filter(|(n, _)| *n != task);
        others.any(|(_, row)| row.state == TaskState::Running)
    }

    /// Tells the next task of the conversation that its turn has come.
    fn tell_next(&mut self) {
        let next = self.tables.tasks.iter().position(|row| row.exists && row.state == TaskState::Waiting);
        if let Some(next) = next {
            self.tables.tell(next as u8, What::Start);
        }
    }

    /// Does what a committed decision asks for.
    fn written(&mut self, d: usize, decision: &Decision) {
        self.tell(|| format!("dispatcher {d} advances task {}: it is {}", decision.task, decision.after.state()));
        for call in 0..self.tables.calls.len() {
            let row = self.tables.calls[call];
            let Some(place) = row.place else { continue };
            if decision.calls.iter().any(|new| new.place == Some(place)) {
                self.tell(|| {
                    format!("    its call {call} (turn {}, call_index {}) is ready", place.turn, place.call_index)
                });
                self.publish(super::Job { call: call as CallNo, attempt: 1 }, 1);
            }
            if decision.cancel.contains(&place) && row.is_open() {
                let what = dispatcher::Task::Cancel { call: call as CallNo, for_client: false };
                self.dispatchers[d].begin(what);
            }
        }
    }
}
