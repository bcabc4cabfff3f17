//! Calls of a turn: which of them run, and what answers each.

use redial_proto::{CallId, ErrorClass, Failure, Help, Message, Role, TaskCode, TaskDecision, limits};

use super::{
    event::{Proposed, Verdict},
    memory::{self, FailedCall, canonical_key},
    state::{Calling, Phase},
    step::{StepBuilder, WantedCall, failed},
    turn_call::{Arguments, Status, TurnCall},
};
use crate::{
    Route,
    feedback::{self, CallFailure},
    route,
    view::{self, READ_RESULT},
};

/// Bytes of a call's arguments that are remembered while it runs.
const MAX_WRITTEN: usize = 4096;

struct Answer<'a> {
    result: Result<&'a str, &'a Failure>,
    /// What helps to correct refused arguments.
    help: Option<&'a Help>,
    /// A worker ran it.
    ran: bool,
}

#[derive(Clone, Copy)]
struct Refusal<'a> {
    failure: &'a Failure,
    help: Option<&'a Help>,
}

impl StepBuilder<'_> {
    /// Takes up one call of a reply: runs it, lets it wait for its turn, or answers it at once.
    pub(super) fn propose(&mut self, calling: &mut Calling, id: String, proposed: Proposed) {
        let mut call = TurnCall {
            id,
            tool: proposed.tool().to_owned(),
            key: canonical_key(proposed.final_arguments()),
            written: limits::shorten(&proposed.arguments, MAX_WRITTEN),
            version: String::new(),
            polling: false,
            sequential: false,
            unknown_tool: matches!(proposed.verdict, Verdict::Refused { tool: None, .. }),
            // Replaced before the event is over: by what the verdict leads to.
            status: Status::Failed,
        };
        self.task.carried.has_read_on |= call.tool == READ_RESULT;
        match proposed.verdict {
            Verdict::Answered { output, .. } => {
                let n = calling.push(call);
                self.record_answer(calling, n, &Answer { result: Ok(&output), help: None, ran: false });
            }
            Verdict::Refused { failure, version, help, .. } => {
                call.version = version;
                let before = self.task.carried.memory.same_call(&call, self.context.now);
                let before = before.map(|repeated| feedback::repeated(self.words(), &call.tool, repeated));
                let (repairs, undeclared) = match help.as_deref() {
                    Some(help) => (help.repairs.clone(), help.undeclared.clone()),
                    None => Default::default(),
                };
                let arguments = Arguments { text: proposed.arguments, repairs, undeclared };
                let refusal = Refusal { failure: &before.unwrap_or(failure), help: help.as_deref() };
                self.refuse(calling, call, arguments, refusal);
            }
            Verdict::Run { arguments, repairs, undeclared, version, polling, sequential, .. } => {
                call = TurnCall { version, polling, sequential, ..call };
                let arguments = Arguments { text: arguments, repairs, undeclared };
                match self.objection(calling, &call) {
                    Some(failure) => self.refuse(calling, call, arguments, Refusal { failure: &failure, help: None }),
                    None => self.run_or_queue(calling, call, arguments),
                }
            }
        }
    }

    /// Says why a call that could run must not.
    fn objection(&mut self, calling: &mut Calling, call: &TurnCall) -> Option<Failure> {
        if calling.stop.is_some() {
            return Some(self.stopped(calling.stop));
        }
        if self.task.tool_calls >= self.context.agent.budgets.tool_calls {
            calling.over_budget = true;
            let message = format!("not run: {}", self.limit(TaskCode::ToolCallsExhausted));
            return Some(failed(ErrorClass::BudgetExhausted, message));
        }
        let repeated = self.task.carried.memory.repeated(call, self.context.now)?;
        Some(feedback::repeated(self.words(), &call.tool, repeated))
    }

    fn refuse(&mut self, calling: &mut Calling, call: TurnCall, arguments: Arguments, refusal: Refusal<'_>) {
        let n = calling.push(call);
        self.write_call(calling, n, arguments, Some(refusal));
        self.record_answer(calling, n, &Answer { result: Err(refusal.failure), help: refusal.help, ran: false });
    }

    fn run_or_queue(&mut self, calling: &mut Calling, call: TurnCall, arguments: Arguments) {
        self.task.tool_calls += 1;
        let waits = call.sequential && calling.calls.iter().any(|other| other.sequential && other.is_open());
        let n = calling.push(call);
        if waits {
            calling.calls[n].status = Status::Queued(arguments);
        } else {
            self.run(calling, n, arguments);
        }
    }

    fn run(&mut self, calling: &mut Calling, n: usize, arguments: Arguments) {
        let call = &calling.calls[n];
        let client = self.context.agent.function(&call.tool).is_some();
        self.out.decisions.push(TaskDecision::Run {
            turn: calling.turn,
            call_index: number(n),
            id: call.id.clone(),
            tool: call.tool.clone(),
            repairs: arguments.repairs.clone(),
            client,
        });
        let id = self.write_call(calling, n, arguments, None);
        calling.calls[n].status = Status::Running(id);
    }

    fn write_call(
        &mut self,
        calling: &Calling,
        n: usize,
        arguments: Arguments,
        refusal: Option<Refusal<'_>>,
    ) -> CallId {
        let id = (self.context.new_id)();
        self.out.calls.push(WantedCall {
            id,
            turn: calling.turn,
            call_index: number(n),
            tool: calling.calls[n].tool.clone(),
            arguments: arguments.text,
            version: calling.calls[n].version.clone(),
            repairs: arguments.repairs,
            undeclared: arguments.undeclared,
            help: refusal.and_then(|refusal| refusal.help).map(|help| Box::new(help.without_lists())),
            refusal: refusal.map(|refusal| refusal.failure.clone()),
        });
        id
    }

    pub(super) fn call_ended(&mut self, mut calling: Calling, call_index: u32, end: &Result<String, Failure>) -> Phase {
        let n = usize::try_from(call_index).unwrap_or(usize::MAX).wrapping_sub(1);
        if calling.calls.get(n).is_none_or(|call| !matches!(call.status, Status::Running(_))) {
            return Phase::Calling(calling);
        }
        self.record_answer(
            &mut calling,
            n,
            &Answer { result: end.as_ref().map(String::as_str), help: None, ran: true },
        );
        self.run_next_in_line(&mut calling);
        self.go_on(calling)
    }

    /// Starts the next of the calls that run one after the other. One that has become a repetition while it waited is
    /// refused instead.
    fn run_next_in_line(&mut self, calling: &mut Calling) {
        while let Some(n) = calling.calls.iter().position(|call| call.sequential && call.is_open()) {
            let call = &mut calling.calls[n];
            let Status::Queued(arguments) = &mut call.status else { return };
            let arguments = std::mem::take(arguments);
            let repeated = self.task.carried.memory.repeated(call, self.context.now);
            let Some(failure) = repeated.map(|why| feedback::repeated(self.words(), &call.tool, why)) else {
                return self.run(calling, n, arguments);
            };
            self.task.tool_calls = self.task.tool_calls.saturating_sub(1);
            self.write_call(calling, n, arguments, Some(Refusal { failure: &failure, help: None }));
            self.record_answer(calling, n, &Answer { result: Err(&failure), help: None, ran: false });
        }
    }

    /// Answers the calls that wait for their turn, because it will not come.
    pub(super) fn answer_queued(&mut self, calling: &mut Calling) {
        for n in 0..calling.calls.len() {
            if matches!(calling.calls[n].status, Status::Queued(_)) {
                self.task.tool_calls = self.task.tool_calls.saturating_sub(1);
                let failure = self.stopped(calling.stop);
                self.record_answer(calling, n, &Answer { result: Err(&failure), help: None, ran: false });
            }
        }
    }

    /// Writes the one tool message of a call, at its sequence number.
    fn record_answer(&mut self, calling: &mut Calling, n: usize, answer: &Answer<'_>) {
        let call = &calling.calls[n];
        let failure = answer.result.err();
        let corrections_left =
            failure.filter(|failure| is_correctable(failure)).map(|failure| self.corrections_left(failure, call));
        let content = match answer.result {
            Ok(output) => output.to_owned(),
            Err(failure) => {
                let (tool, sent) = (call.tool.as_str(), call.written.as_str());
                let failed = CallFailure { tool, sent, failure, help: answer.help, corrections_left };
                feedback::call_failure(self.words(), failed, view::whole_feedback(self.context.agent.result_bytes))
            }
        };
        self.out.decisions.push(TaskDecision::Answered {
            turn: calling.turn,
            call_index: number(n),
            id: call.id.clone(),
            tool: call.tool.clone(),
            ran: answer.ran,
            class: failure.map(|failure| failure.class),
            message: failure.map(|failure| failure.message.clone()),
            corrections_left,
        });
        let message = Message {
            call_id: Some(call.id.clone()),
            tool: Some(call.tool.clone()),
            class: failure.map(|failure| failure.class),
            ..Message::text(Role::Tool, content)
        };
        self.write(calling.base_seq + number(n), message);
        self.remember(calling.turn, call, answer);
        calling.calls[n].status = status(call, answer);
    }

    fn remember(&mut self, turn: u32, call: &TurnCall, answer: &Answer<'_>) {
        let words = self.words();
        let (memory, now) = (&mut self.task.carried.memory, self.context.now);
        match answer.result {
            Ok(output) if answer.ran => memory.succeeded(call, output, turn),
            Err(failure) if memory::is_memorable(failure) => {
                let error = memory::in_words(feedback::message(words, &call.tool, failure), failure);
                memory.failed(call, FailedCall { failure, error, turn, now });
            }
            _ => {}
        }
    }
}

fn status(call: &TurnCall, answer: &Answer<'_>) -> Status {
    match answer.result {
        Ok(_) => Status::Succeeded,
        Err(failure) if is_correctable(failure) => {
            Status::Correctable { unknown_tool: call.is_of_unknown_tool(failure) }
        }
        Err(_) => Status::Failed,
    }
}

/// True if the model can do something about it, or may at least try something else.
fn is_correctable(failure: &Failure) -> bool {
    !failure.effect_possible && matches!(route(failure.class), Route::Feedback | Route::Unexplained)
}

fn number(n: usize) -> u32 {
    u32::try_from(n + 1).unwrap_or(u32::MAX)
}
