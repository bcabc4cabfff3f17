//! One task on its way through the engine: what came in becomes the engine's event. The same for a task that is
//! advanced and for one that is replayed. Pure.

use redial_engine::{
    Time,
    task::{self, CallFailure, Event, Step, Task},
};
use redial_proto::{
    AgentSpec, CallState, ErrorClass, FieldError, Language, StoredMessage, TaskId, TaskInput, TurnReply, TurnRequest,
};
use redial_store::EndedCall;

use super::resolve::{Resolver, Shown};

/// A task, what it depends on, and the conversation as far as it is known.
pub(crate) struct Life<'a> {
    pub(crate) id: TaskId,
    pub(crate) spec: &'a AgentSpec,
    pub(crate) language: Language,
    /// What the user wants.
    pub(crate) input: &'a str,
    pub(crate) task: Task,
    /// In order.
    pub(crate) messages: Vec<StoredMessage>,
}

impl Life<'_> {
    /// Lets something happen to the task. `ended` is the call whose end it is, if it is one.
    pub(crate) fn feed(
        &mut self,
        input: &TaskInput,
        ended: Option<&EndedCall>,
        resolver: &mut Resolver<'_>,
        now: Time,
    ) -> Step {
        let event = self.event(input, ended, resolver);
        let step = task::step(&mut self.task, self.spec, self.language, event, now);
        for (seq, message) in &step.messages {
            self.messages.push(StoredMessage { seq: *seq, task: self.id, at: now, message: message.clone() });
        }
        // A tool's message may stand before one that is there already.
        self.messages.sort_by_key(|message| message.seq);
        step
    }

    fn event(&self, input: &TaskInput, ended: Option<&EndedCall>, resolver: &mut Resolver<'_>) -> Event {
        match input {
            TaskInput::Started { first_seq, system, carried } => Event::Started {
                input: self.input.to_owned(),
                first_seq: *first_seq,
                system: *system,
                carried: carried.clone(),
            },
            TaskInput::TurnEnded { turn, .. } => {
                let end = output(ended).and_then(|call| self.reply(call, resolver));
                Event::TurnEnded { turn: *turn, end }
            }
            TaskInput::CallEnded { turn, call_index, .. } => {
                let end = output(ended).map(|call| call.output.clone().unwrap_or_default());
                Event::CallEnded { turn: *turn, call_index: *call_index, end }
            }
            TaskInput::Retrying { .. } => Event::Retrying,
            TaskInput::CancelRequested => Event::CancelRequested,
            TaskInput::Woken => Event::Woken,
        }
    }

    /// What a model said, resolved against what it was offered.
    fn reply(&self, call: &EndedCall, resolver: &mut Resolver<'_>) -> Result<task::Reply, CallFailure> {
        let output = call.output.as_deref().unwrap_or_default();
        let reply: TurnReply = serde_json::from_str(output).map_err(|error| {
            failed(ErrorClass::OutputInvalid, format!("the model's worker answered what is no reply: {error}"))
        })?;
        let request: TurnRequest = serde_json::from_str(call.arguments.as_deref().unwrap_or_default())
            .map_err(|error| failed(ErrorClass::Internal, format!("the model's request cannot be read: {error}")))?;
        let shown = Shown {
            offers: &request.tools,
            messages: &self.messages,
            result_bytes: self.spec.result_bytes,
            language: request.language,
        };
        Ok(resolver.reply(reply, shown))
    }
}

/// The call, if it has an output; else why not.
fn output(ended: Option<&EndedCall>) -> Result<&EndedCall, CallFailure> {
    match ended {
        Some(call) if call.state == CallState::Succeeded => Ok(call),
        Some(call) => Err(failure(call)),
        None => Err(failed(ErrorClass::Internal, "the call is not on record".to_owned())),
    }
}

fn failure(call: &EndedCall) -> CallFailure {
    let details = call.details.as_deref().and_then(|details| serde_json::from_str::<Vec<FieldError>>(details).ok());
    let class = match call.state {
        CallState::Cancelled => ErrorClass::Cancelled,
        _ => call.class.unwrap_or(ErrorClass::Internal),
    };
    CallFailure {
        class,
        message: call.message.clone().unwrap_or_else(|| format!("it ended as {}", call.state)),
        details: details.unwrap_or_default(),
        unknown: call.state == CallState::Unknown,
    }
}

fn failed(class: ErrorClass, message: String) -> CallFailure {
    CallFailure { class, message, details: Vec::new(), unknown: false }
}
