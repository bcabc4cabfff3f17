//! Calls of a turn: which of them run, and what answers each.

use redial_proto::{ErrorClass, Message, Repair, Role, TaskCode, TaskDecision, limits};

use super::{
    CallFailure, NewCall, Proposed, Verdict,
    machine::Machine,
    memory::{self, canonical_key},
    state::{Slot, Status},
};
use crate::{Route, feedback, route};

/// Bytes of a call's arguments that are remembered while it runs.
const MOST_WRITTEN: usize = 4096;

impl Proposed {
    /// The tool's own name, or the name as written.
    pub(super) fn tool(&self) -> &str {
        match &self.verdict {
            Verdict::Run { tool, .. } | Verdict::Answered { tool, .. } | Verdict::Refused { tool: Some(tool), .. } => {
                tool
            }
            Verdict::Refused { tool: None, .. } => &self.name,
        }
    }

    /// What runs, or what was written.
    pub(super) fn final_arguments(&self) -> &str {
        match &self.verdict {
            Verdict::Run { arguments, .. } => arguments,
            _ => &self.arguments,
        }
    }
}

/// How a call is answered.
struct Answer<'a> {
    result: Result<&'a str, &'a CallFailure>,
    /// A worker ran it.
    ran: bool,
}

impl Machine<'_> {
    /// Takes up one call of a reply: runs it, lets it wait for its turn, or answers it at once.
    pub(super) fn propose(&mut self, id: String, call: Proposed) {
        let (tool, key) = (call.tool().to_owned(), canonical_key(call.final_arguments()));
        let mut call_index = Slot {
            id,
            tool,
            key,
            written: limits::shorten(&call.arguments, MOST_WRITTEN),
            version: String::new(),
            polling: false,
            sequential: false,
            status: Status::Running,
        };
        let Proposed { arguments: written, verdict, .. } = call;
        match verdict {
            Verdict::Answered { output, .. } => {
                self.task.slots.push(call_index);
                let n = self.task.slots.len() - 1;
                self.settle(n, &Answer { result: Ok(&output), ran: false });
            }
            Verdict::Refused { failure, version, .. } => {
                call_index.version = version;
                let before = self.task.carried.memory.same_call(&call_index, self.now);
                let before = before.map(|repeated| feedback::repeated(self.words(), &call_index.tool, repeated));
                let failure = before.unwrap_or(failure);
                self.refuse(call_index, written, Vec::new(), &failure);
            }
            Verdict::Run { arguments, repairs, version, polling, sequential, .. } => {
                call_index.version = version;
                call_index.polling = polling;
                call_index.sequential = sequential;
                match self.objection(&call_index) {
                    Some(failure) => self.refuse(call_index, arguments, repairs, &failure),
                    None => self.run_or_queue(call_index, arguments, repairs),
                }
            }
        }
    }

    /// Why a call that could run must not.
    fn objection(&mut self, call_index: &Slot) -> Option<CallFailure> {
        if self.task.stop.is_some() {
            return Some(self.stopped());
        }
        if self.task.tool_calls >= self.agent.budgets.tool_calls {
            self.task.over_budget = true;
            let message = format!("not run: {}", self.limit(TaskCode::ToolCallsExhausted));
            let class = ErrorClass::BudgetExhausted;
            return Some(CallFailure { class, message, details: Vec::new(), unknown: false });
        }
        let repeated = self.task.carried.memory.repeated(call_index, self.now)?;
        Some(feedback::repeated(self.words(), &call_index.tool, repeated))
    }

    fn refuse(&mut self, call_index: Slot, arguments: String, repairs: Vec<Repair>, failure: &CallFailure) {
        self.task.slots.push(call_index);
        let n = self.task.slots.len() - 1;
        self.write_call(n, arguments, repairs, Some(failure.clone()));
        self.settle(n, &Answer { result: Err(failure), ran: false });
    }

    fn run_or_queue(&mut self, mut call_index: Slot, arguments: String, repairs: Vec<Repair>) {
        self.task.tool_calls += 1;
        let waits = call_index.sequential
            && self.task.slots.iter().any(|call_index| call_index.sequential && call_index.status.is_open());
        if waits {
            call_index.status = Status::Queued { arguments, repairs };
            self.task.slots.push(call_index);
        } else {
            self.task.slots.push(call_index);
            self.run(self.task.slots.len() - 1, arguments, repairs);
        }
    }

    fn run(&mut self, n: usize, arguments: String, repairs: Vec<Repair>) {
        let call_index = &mut self.task.slots[n];
        call_index.status = Status::Running;
        let decision = TaskDecision::Run {
            turn: self.task.turn,
            call_index: number(n),
            id: call_index.id.clone(),
            tool: call_index.tool.clone(),
            repairs: repairs.clone(),
        };
        self.out.decisions.push(decision);
        self.write_call(n, arguments, repairs, None);
    }

    fn write_call(&mut self, n: usize, arguments: String, repairs: Vec<Repair>, refusal: Option<CallFailure>) {
        let tool = self.task.slots[n].tool.clone();
        let call = NewCall { turn: self.task.turn, call_index: number(n), tool, arguments, repairs, refusal };
        self.out.calls.push(call);
    }

    /// A worker has ended a call.
    pub(super) fn call_ended(&mut self, call_index: u32, end: &Result<String, CallFailure>) {
        let n = usize::try_from(call_index).unwrap_or(usize::MAX).wrapping_sub(1);
        if self.task.slots.get(n).is_none_or(|call_index| call_index.status != Status::Running) {
            return;
        }
        self.settle(n, &Answer { result: end.as_ref().map(String::as_str), ran: true });
        self.run_next_in_line();
        if !self.task.is_open() {
            self.turn_answered();
        }
    }

    /// Starts the next of the calls that run one after the other. One that has become a repetition while it waited is
    /// refused instead.
    fn run_next_in_line(&mut self) {
        loop {
            let next =
                self.task.slots.iter().position(|call_index| call_index.sequential && call_index.status.is_open());
            let Some(n) = next else { return };
            let call_index = &mut self.task.slots[n];
            let Status::Queued { arguments, repairs } = &mut call_index.status else { return };
            let (arguments, repairs) = (std::mem::take(arguments), std::mem::take(repairs));
            let call_index = &self.task.slots[n];
            let repeated = self.task.carried.memory.repeated(call_index, self.now);
            let Some(failure) = repeated.map(|why| feedback::repeated(self.words(), &call_index.tool, why)) else {
                return self.run(n, arguments, repairs);
            };
            self.task.tool_calls = self.task.tool_calls.saturating_sub(1);
            self.write_call(n, arguments, repairs, Some(failure.clone()));
            self.settle(n, &Answer { result: Err(&failure), ran: false });
        }
    }

    /// Answers the calls that wait for their turn, because there will be none.
    pub(super) fn answer_queued(&mut self) {
        for n in 0..self.task.slots.len() {
            if matches!(self.task.slots[n].status, Status::Queued { .. }) {
                self.task.tool_calls = self.task.tool_calls.saturating_sub(1);
                let failure = self.stopped();
                self.settle(n, &Answer { result: Err(&failure), ran: false });
            }
        }
    }

    /// Writes the one tool message of a call, at its place.
    fn settle(&mut self, n: usize, answer: &Answer<'_>) {
        let call_index = self.task.slots[n].clone();
        let corrections_left = answer.result.err().filter(|f| is_correctable(f));
        let corrections_left = corrections_left.map(|failure| self.corrections_left(failure, &call_index));
        let content = match answer.result {
            Ok(output) => output.to_owned(),
            Err(failure) => {
                feedback::failed_call_of(self.words(), &call_index.tool, &call_index.written, failure, corrections_left)
            }
        };
        let failure = answer.result.err();
        self.out.decisions.push(TaskDecision::Answered {
            turn: self.task.turn,
            call_index: number(n),
            id: call_index.id.clone(),
            tool: call_index.tool.clone(),
            ran: answer.ran,
            class: failure.map(|failure| failure.class),
            message: failure.map(|failure| failure.message.clone()),
            corrections_left,
        });
        let message = Message {
            call_id: Some(call_index.id.clone()),
            tool: Some(call_index.tool.clone()),
            class: failure.map(|failure| failure.class),
            ..Message::text(Role::Tool, content)
        };
        self.write(self.task.base_seq + number(n), message);
        self.remember(&call_index, answer);
        self.task.slots[n].status = match answer.result {
            Ok(_) => Status::Succeeded,
            Err(failure) if is_correctable(failure) => {
                Status::Correctable { unknown_tool: failure.class == ErrorClass::UnknownTool }
            }
            Err(_) => Status::Failed,
        };
    }

    fn remember(&mut self, call_index: &Slot, answer: &Answer<'_>) {
        let words = self.words();
        let (memory, turn, now) = (&mut self.task.carried.memory, self.task.turn, self.now);
        match answer.result {
            Ok(output) if answer.ran => memory.succeeded(call_index, output, turn),
            Err(failure) if memory::is_memorable(failure) => {
                let error = memory::in_words(feedback::message(words, &call_index.tool, failure), failure);
                memory.failed(call_index, failure, error, (turn, now));
            }
            _ => {}
        }
    }
}

/// The model can do something about it.
pub(super) fn is_correctable(failure: &CallFailure) -> bool {
    !failure.unknown && route(failure.class) == Route::Feedback
}

fn number(n: usize) -> u32 {
    u32::try_from(n + 1).unwrap_or(u32::MAX)
}
