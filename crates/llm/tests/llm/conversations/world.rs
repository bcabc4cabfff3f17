//! A dispatcher, its database, workers and models, simulated in memory with random behaviour.

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use redial_engine::{
    Time,
    task::{Event, Step, StepContext, Task, step},
    view::{Limits, view},
};
use redial_proto::{AgentSpec, CallId, Language, Message, Role, StoredMessage, TaskId};
use serde_json::Value;

use super::{
    invent, providers,
    record::{Committed, Record},
    tally::Tally,
};

/// Changes a step before it is committed.
pub(crate) type Mutation = fn(&mut Step);

/// More events than a task with these limits can need.
const MAX_EVENTS: u32 = 1500;

struct World {
    rng: StdRng,
    agent: AgentSpec,
    language: Language,
    record: Record,
    task: Task,
    now: Time,
    wake_at: Option<Time>,
    /// Counts the ids of calls.
    ids: u128,
    /// Earlier events, which may be delivered again.
    past: Vec<Event>,
    cancels: bool,
    slow: bool,
    mutation: Option<Mutation>,
    tally: Tally,
}

/// One conversation of one to three tasks. The error names the broken rule.
pub(crate) fn history(seed: u64, mutation: Option<Mutation>) -> Result<Tally, String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut world = World {
        agent: invent::agent(&mut rng),
        language: invent::language(&mut rng),
        record: Record::default(),
        task: Task::default(),
        now: DateTime::<Utc>::UNIX_EPOCH,
        wake_at: None,
        ids: 0,
        past: Vec::new(),
        cancels: false,
        slow: false,
        rng,
        mutation,
        tally: Tally::default(),
    };
    let (mut carried, mut system) = (Value::Null, true);
    for _ in 0..world.rng.random_range(1..=3) {
        world.task(carried, system)?;
        carried = world.task.carried();
        system = world.rng.random_bool(0.2);
        if system {
            world.agent = invent::agent(&mut world.rng);
        }
    }
    Ok(world.tally)
}

impl World {
    /// One task from its submission to its end, and some events after its end.
    fn task(&mut self, carried: Value, system: bool) -> Result<(), String> {
        self.record.next_task();
        self.task = Task::default();
        self.past.clear();
        (self.cancels, self.slow) = (self.rng.random_bool(0.2), self.rng.random_bool(0.2));
        if self.rng.random_bool(0.02) {
            self.deliver(&Event::CancelRequested)?;
        } else {
            let (input, first_seq) = (invent::input(&mut self.rng), self.record.next_seq());
            let system = system && !self.agent.system.trim().is_empty();
            self.deliver(&Event::Started { input, first_seq, system, carried })?;
        }
        let mut events = 0;
        while self.record.ended.is_none() {
            let event = self.event();
            self.deliver(&event)?;
            events += 1;
            if events > MAX_EVENTS {
                return Err(format!("the task has not ended after {events} events"));
            }
        }
        for _ in 0..3 {
            let event = self.noise();
            self.deliver(&event)?;
        }
        Ok(())
    }

    /// The next event: mostly one that is due, sometimes one that is not.
    fn event(&mut self) -> Event {
        let most = if self.slow { 600 } else { 20 };
        self.now += TimeDelta::seconds(self.rng.random_range(0..most));
        match self.rng.random_range(0..20) {
            0..=2 => self.noise(),
            3 if self.cancels => Event::CancelRequested,
            4 => {
                if self.slow
                    && let Some(wake_at) = self.wake_at
                {
                    self.now = self.now.max(wake_at);
                }
                Event::Woken
            }
            _ => self.due(),
        }
    }

    /// The end of something that runs.
    fn due(&mut self) -> Event {
        if let Some(turn) = self.record.asked {
            return Event::TurnEnded { turn, end: invent::turn_end(&mut self.rng) };
        }
        let running: Vec<_> = self.record.running.iter().map(|(call_id, call)| (*call_id, call.told_to_stop)).collect();
        match running.choose(&mut self.rng) {
            Some(((turn, call_index), stop)) => {
                Event::CallEnded { turn: *turn, call_index: *call_index, end: invent::call_end(&mut self.rng, *stop) }
            }
            None => Event::Woken,
        }
    }

    /// An event that is duplicate, late, early or unexpected.
    fn noise(&mut self) -> Event {
        let again = self.past.choose(&mut self.rng).cloned();
        let open = self.record.asked.unwrap_or_default();
        match (self.rng.random_range(0..6), again) {
            (0..=2, Some(event)) => event,
            (3, _) => {
                let turn = self.rng.random_range(0..9);
                let turn = if turn == open { turn + 1 } else { turn };
                Event::TurnEnded { turn, end: invent::turn_end(&mut self.rng) }
            }
            (4, _) => {
                let (turn, call_index) = (self.rng.random_range(0..9), self.rng.random_range(0..7));
                if self.record.running.contains_key(&(turn, call_index)) {
                    return Event::Retrying;
                }
                Event::CallEnded { turn, call_index, end: invent::call_end(&mut self.rng, false) }
            }
            _ => Event::Retrying,
        }
    }

    /// Lets the engine decide and commits the decision, sometimes after a crash before the commit.
    fn deliver(&mut self, event: &Event) -> Result<(), String> {
        let (mut task, mut done) = self.decide(event);
        if self.rng.random_bool(0.2) {
            self.tally.note("crash before the commit");
            self.read_back()?;
            let again = self.decide(event);
            if again != (task, done) {
                return Err("the same event and state led to another decision".to_owned());
            }
            (task, done) = again;
        }
        self.ids += 1_000;
        if let Some(mutation) = self.mutation {
            mutation(&mut done);
        }
        self.task = task;
        self.wake_at = done.wake_at;
        self.tally.step(&done);
        let (task, agent, now) = (&self.task, &self.agent, self.now);
        self.record.commit(&Committed { event, step: &done, task, agent, now })?;
        if !matches!(event, Event::Started { .. }) {
            self.past.push(event.clone());
        }
        let tools = done.turn.is_some_and(|turn| turn.tools);
        if self.record.messages.is_empty() { Ok(()) } else { self.ask(tools) }
    }

    /// Lets the engine decide.
    fn decide(&self, event: &Event) -> (Task, Step) {
        let mut task = self.task.clone();
        // The same ids when the same event is decided again, and other ones for the next.
        let mut n = self.ids;
        let mut new_id = || {
            n += 1;
            CallId(uuid::Uuid::from_u128(n))
        };
        let (agent, language, now) = (&self.agent, self.language, self.now);
        let context = StepContext { agent, language, now, new_id: &mut new_id };
        let done = step(&mut task, event.clone(), context);
        (task, done)
    }

    /// Another dispatcher continues with the state as stored.
    fn read_back(&mut self) -> Result<(), String> {
        let text =
            serde_json::to_string(&self.task).map_err(|error| format!("the state cannot be serialized: {error}"))?;
        let read: Task =
            serde_json::from_str(&text).map_err(|error| format!("the state cannot be parsed: {error}: {text}"))?;
        if read != self.task {
            return Err(format!("the state changed when it was stored: {text}"));
        }
        self.task = read;
        Ok(())
    }

    /// Builds the request of every provider, after each step, also while calls are open: each must be valid.
    fn ask(&mut self, tools: bool) -> Result<(), String> {
        let id = TaskId(uuid::Uuid::nil());
        let stored = |(seq, message): (&u32, &redial_proto::Message)| StoredMessage {
            seq: *seq,
            task: id,
            at: self.now,
            message: message.clone(),
        };
        let mut messages: Vec<_> = self.record.messages.iter().map(stored).collect();
        if let Some(last) = messages.last().filter(|last| last.message.role == Role::Assistant) {
            // After an answer only the next task starts a turn.
            let next =
                StoredMessage { seq: last.seq + 1, message: Message::text(Role::User, "Continue."), ..last.clone() };
            messages.push(next);
        }
        let limits = Limits {
            context_tokens: if self.rng.random_bool(0.5) { 32_000 } else { self.rng.random_range(100..3000) },
            result_bytes: self.agent.result_bytes,
            bytes: if self.rng.random_bool(0.8) { 200_000 } else { self.rng.random_range(1000..8000) },
        };
        let (seen, trimmed) = view(&messages, self.task.pruned(), limits);
        self.tally.note("view");
        for (what, times) in [("view shortened", trimmed.shortened), ("view left out", trimmed.left_out)] {
            if times > 0 {
                self.tally.note(what);
            }
        }
        if !self.task.pruned().is_empty() {
            self.tally.note("view pruned");
        }
        if let Some(call) =
            seen.iter().flat_map(|message| &message.calls).find(|call| self.task.pruned().contains(&call.id))
        {
            return Err(format!("the view contains {call:?}, which is pruned"));
        }
        let offered = if tools { invent::offers() } else { Vec::new() };
        providers::check(seen, offered, self.language, &mut self.rng)
    }
}
