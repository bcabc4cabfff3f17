//! Recorded inputs of a task become events of the state machine, the same way when a task is planned and when it is
//! replayed.

mod conversation;
mod cut_off;
mod resolve;

use redial_proto::{
    AgentSpec, CallId, CallState, ErrorClass, Failure, Language, TaskId, TaskInput, TurnReply, TurnRequest, estimate,
};
use redial_records::EndedCall;

pub use self::resolve::Aside;
pub(super) use self::{
    conversation::Conversation,
    resolve::{Resolver, Shown},
};
use super::{
    event::{Event, Reply},
    state::Task,
    step::{Step, StepContext, failed, step},
};
use crate::Time;

/// A task, what it depends on, and its conversation as far as it is known.
#[derive(Debug)]
pub(super) struct TaskRun {
    pub(super) id: TaskId,
    pub(super) agent: AgentSpec,
    pub(super) language: Language,
    /// What the user wants.
    pub(super) input: String,
    pub(super) task: Task,
    pub(super) conversation: Conversation,
}

/// Results of earlier calls that have to be read first, by the ids of their calls in the conversation.
pub(super) type MissingResults = Vec<String>;

/// What is still to happen to a task.
#[derive(Debug)]
pub(super) struct PendingInput {
    pub(super) input: TaskInput,
    /// The call whose end it is, if it is one.
    pub(super) ended: Option<EndedCall>,
}

impl TaskRun {
    /// Lets an input happen to the task. Nothing happened if results are missing.
    pub(super) fn apply(
        &mut self,
        pending: &PendingInput,
        resolver: &mut Resolver<'_>,
        now: Time,
        new_id: &mut dyn FnMut() -> CallId,
    ) -> Result<Step, MissingResults> {
        let event = self.event(pending, resolver)?;
        let context = StepContext { agent: &self.agent, language: self.language, now, new_id };
        let step = step(&mut self.task, event, context);
        self.conversation.write(self.id, now, &step.messages);
        Ok(step)
    }

    fn event(&self, pending: &PendingInput, resolver: &mut Resolver<'_>) -> Result<Event, MissingResults> {
        let ended = pending.ended.as_ref();
        Ok(match &pending.input {
            TaskInput::Started { first_seq, system, carried } => Event::Started {
                input: self.input.clone(),
                first_seq: *first_seq,
                system: *system,
                carried: carried.clone(),
            },
            TaskInput::TurnEnded { turn, .. } => {
                let end = match succeeded(ended).and_then(read) {
                    Ok((reply, request)) => Ok(self.resolve(reply, &request, resolver)?),
                    Err(failure) => Err(failure),
                };
                Event::TurnEnded { turn: *turn, end }
            }
            TaskInput::CallEnded { turn, call_index, .. } => {
                let end = succeeded(ended).map(|call| call.output.clone().unwrap_or_default());
                Event::CallEnded { turn: *turn, call_index: *call_index, end }
            }
            TaskInput::Retrying { .. } => Event::Retrying,
            TaskInput::CancelRequested => Event::CancelRequested,
            // Only a replay meets an unknown input; it then reports that the decisions differ.
            TaskInput::Woken | TaskInput::Unknown => Event::Woken,
        })
    }

    /// Resolves a model's reply against what the model was offered.
    fn resolve(
        &self,
        mut reply: TurnReply,
        request: &TurnRequest,
        resolver: &mut Resolver<'_>,
    ) -> Result<Reply, MissingResults> {
        // Workers estimate what a provider does not tell; one in another language may not have.
        let written = estimate::of_reply(&reply);
        reply.usage.estimate(|| estimate::of_request(request), || written);
        let shown = Shown {
            offers: &request.tools,
            conversation: &self.conversation,
            result_bytes: self.agent.result_bytes,
            language: request.language,
        };
        resolver.reply(reply, shown)
    }
}

/// Returns the call, if it has an output; else why it has none.
fn succeeded(ended: Option<&EndedCall>) -> Result<&EndedCall, Failure> {
    match ended {
        Some(call) if call.state == CallState::Succeeded => Ok(call),
        Some(call) => Err(failure(call)),
        None => Err(failed(ErrorClass::Internal, "the call is not on record")),
    }
}

fn failure(call: &EndedCall) -> Failure {
    let unexplained = || failed(ErrorClass::Internal, format!("it ended as {}", call.state));
    let failure = call.failure.clone().unwrap_or_else(unexplained);
    let class = if call.state == CallState::Cancelled { ErrorClass::Cancelled } else { failure.class };
    Failure { class, effect_possible: call.state == CallState::Unknown, ..failure }
}

/// Reads a model's reply, and the request that it answers.
fn read(call: &EndedCall) -> Result<(TurnReply, TurnRequest), Failure> {
    let reply = serde_json::from_str(call.output.as_deref().unwrap_or_default()).map_err(|error| {
        failed(ErrorClass::OutputInvalid, format!("the model's worker sent a reply that could not be parsed: {error}"))
    })?;
    let request = serde_json::from_str(call.arguments.as_deref().unwrap_or_default())
        .map_err(|error| failed(ErrorClass::Internal, format!("the model's request cannot be read: {error}")))?;
    Ok((reply, request))
}
