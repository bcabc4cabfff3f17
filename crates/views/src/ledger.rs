//! The effect ledger: how often a tool was asked to do the work of one call.

use redial_proto::{CallState, ToolEffect};
use schemars::JsonSchema;
use serde::Serialize;

/// How often a call's tool ran, as far as anybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// It has not ended, so this is not decided.
    NotEnded,
    /// No attempt was started.
    NotRun,
    /// One attempt.
    Once,
    /// Several attempts, all with the same idempotency key: the tool does its work once for all of them.
    AgainSameKey,
    /// Several attempts of a tool that may run again, or whose earlier attempts are known to have done nothing.
    Again,
    /// It was cancelled after an attempt had started: how much the tool did before it stopped is not known.
    Stopped,
    /// An attempt of an `unsafe` tool ended without anybody knowing whether it did its work.
    Unknown,
}

/// What the ledger says of a call that was given so many attempts.
pub const fn ran(state: CallState, effect: ToolEffect, attempts: u32) -> Ran {
    match (state, attempts, effect) {
        (CallState::Unknown, ..) => Ran::Unknown,
        (
            CallState::Ready | CallState::Running | CallState::RetryWait | CallState::ClientWait | CallState::Other,
            ..,
        ) => Ran::NotEnded,
        (_, 0, _) => Ran::NotRun,
        (CallState::Cancelled, ..) => Ran::Stopped,
        (_, 1, _) => Ran::Once,
        (.., ToolEffect::Keyed) => Ran::AgainSameKey,
        (.., ToolEffect::Read | ToolEffect::Idempotent | ToolEffect::Unsafe) => Ran::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ledger_says() {
        for (state, effect, attempts, expected) in [
            (CallState::Refused, ToolEffect::Unsafe, 0, Ran::NotRun),
            (CallState::Ready, ToolEffect::Keyed, 0, Ran::NotEnded),
            (CallState::Running, ToolEffect::Keyed, 1, Ran::NotEnded),
            (CallState::RetryWait, ToolEffect::Read, 2, Ran::NotEnded),
            (CallState::Cancelled, ToolEffect::Keyed, 0, Ran::NotRun),
            (CallState::Cancelled, ToolEffect::Read, 1, Ran::Stopped),
            (CallState::Failed, ToolEffect::Read, 1, Ran::Once),
            (CallState::Succeeded, ToolEffect::Keyed, 3, Ran::AgainSameKey),
            (CallState::Succeeded, ToolEffect::Idempotent, 2, Ran::Again),
            (CallState::Failed, ToolEffect::Unsafe, 2, Ran::Again),
            (CallState::Unknown, ToolEffect::Unsafe, 1, Ran::Unknown),
        ] {
            assert_eq!(ran(state, effect, attempts), expected, "{state} {effect:?} {attempts}");
        }
    }
}
