//! Calls on record, as their tasks got their ends into the inbox.

use redial_proto::{CallState, Failure};
use redial_records::EndedCall;
use serde_json::value::RawValue;

use super::CallAudit;

impl CallAudit {
    /// Returns the call as its task got it into its inbox; `None` if it has not ended, or belongs to no task.
    pub fn ended(&self) -> Option<EndedCall> {
        let (line, of) = (&self.line, self.task?);
        let state = Some(line.state).filter(|state| state.is_terminal())?;
        let last = self.attempts_made.last();
        let succeeded = last.filter(|last| state == CallState::Succeeded && last.outcome == "succeeded");
        let output = succeeded.and_then(|last| last.output.as_ref());
        let text = |json: &RawValue| json.get().to_owned();
        Some(EndedCall {
            call: line.call,
            turn: of.turn,
            call_index: of.call_index,
            state,
            failure: self.failure(state),
            output: output.map(|output| text(output)),
            arguments: (of.call_index == 0).then(|| text(&self.arguments)),
        })
    }

    fn failure(&self, state: CallState) -> Option<Failure> {
        let class = self.line.class?;
        let last = self.attempts_made.last().filter(|last| last.class.as_deref() == Some(class.as_str()));
        let details = self.details.as_ref().or(last.and_then(|last| last.details.as_ref()));
        let details = details.and_then(|details| serde_json::from_str(details.get()).ok());
        Some(Failure {
            details: details.unwrap_or_default(),
            effect_possible: state == CallState::Unknown,
            ..Failure::new(class, self.line.message.clone().unwrap_or_default())
        })
    }
}
