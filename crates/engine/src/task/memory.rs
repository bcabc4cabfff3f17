//! What failed before, and which calls repeat themselves: durable, because it is part of the task.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use redial_proto::{ErrorClass, Failure, FieldError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::turn_call::TurnCall;
use crate::{Time, feedback::Repeated, fingerprint::with_sorted_keys};

/// How long the failure of a call is remembered.
const FAILURES_LAST: TimeDelta = TimeDelta::hours(1);
/// How long it is remembered if the service was at fault: that may pass.
const SERVICE_FAILURES_LAST: TimeDelta = TimeDelta::minutes(1);
/// Turns in a row in which a tool failed with the same error, whatever the arguments, before it is not run any more.
const SAME_ERRORS: u32 = 3;
/// Times that the same call gave the same result before it is not run any more.
const SAME_RESULTS: u32 = 3;
/// Failures and results that are remembered; the oldest are forgotten first.
const MOST: usize = 200;
/// Results in a row that are examined for ping-pong.
const RECENT: usize = 4;

/// What a conversation's calls led to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    failures: Vec<Remembered>,
    /// By tool.
    streaks: BTreeMap<String, Streak>,
    results: Vec<Same>,
    recent: Vec<Same>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Remembered {
    call: CallKey,
    class: ErrorClass,
    error: String,
    /// The turn of the current task; 0 for an earlier task's.
    turn: u32,
    until: Time,
}

/// What makes two calls the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CallKey {
    tool: String,
    key: String,
    version: String,
}

/// The same error of a tool, turn after turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Streak {
    version: String,
    signature: String,
    error: String,
    turns: u32,
    last_turn: u32,
    until: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Same {
    call: CallKey,
    result: String,
    #[serde(default)]
    times: u32,
}

/// How and when a call failed.
pub(super) struct FailedCall<'a> {
    pub(super) failure: &'a Failure,
    /// Its text for the model.
    pub(super) error: String,
    /// The turn of the current task.
    pub(super) turn: u32,
    pub(super) now: Time,
}

impl Memory {
    /// Begins another task of the conversation: the user may want the same calls again. Failures stay.
    pub(super) fn new_task(&mut self) {
        self.results.clear();
        self.recent.clear();
        for failure in &mut self.failures {
            failure.turn = 0;
        }
        for streak in self.streaks.values_mut() {
            streak.last_turn = 0;
        }
    }

    /// Says why a call would be a repetition, if it would.
    pub(super) fn repeated(&self, call: &TurnCall, now: Time) -> Option<Repeated<'_>> {
        if call.polling {
            return None;
        }
        self.same_call(call, now)
            .or_else(|| self.same_error(call, now))
            .or_else(|| self.same_result(call))
            .or_else(|| self.ping_pong(call))
    }

    pub(super) fn same_call(&self, call: &TurnCall, now: Time) -> Option<Repeated<'_>> {
        let key = CallKey::of(call);
        let failure = self.failures.iter().find(|failure| failure.call == key && now < failure.until)?;
        Some(Repeated::SameCall { error: &failure.error })
    }

    fn same_error(&self, call: &TurnCall, now: Time) -> Option<Repeated<'_>> {
        let streak = self.streaks.get(&call.tool)?;
        let holds = streak.turns >= SAME_ERRORS && streak.version == call.version && now < streak.until;
        holds.then_some(Repeated::SameError { error: &streak.error, times: streak.turns })
    }

    fn same_result(&self, call: &TurnCall) -> Option<Repeated<'_>> {
        let key = CallKey::of(call);
        let same = self.results.iter().find(|same| same.call == key && same.times >= SAME_RESULTS)?;
        Some(Repeated::SameResult { times: same.times })
    }

    fn ping_pong(&self, call: &TurnCall) -> Option<Repeated<'_>> {
        let key = CallKey::of(call);
        match self.recent.as_slice() {
            [a, b, c, d] if a == c && b == d && a.call == key && b.call != key => {
                Some(Repeated::PingPong { other: &b.call.tool })
            }
            _ => None,
        }
    }

    pub(super) fn failed(&mut self, call: &TurnCall, FailedCall { failure, error, turn, now }: FailedCall<'_>) {
        if call.polling {
            return;
        }
        let key = CallKey::of(call);
        let until = now + if is_passing(failure) { SERVICE_FAILURES_LAST } else { FAILURES_LAST };
        self.failures.retain(|known| known.call != key && now < known.until);
        let streak = Streak {
            version: call.version.clone(),
            signature: signature(failure),
            error: error.clone(),
            turns: 1,
            last_turn: turn,
            until,
        };
        self.failures.push(Remembered { call: key, class: failure.class, error, turn, until });
        keep_newest(&mut self.failures, MOST);
        self.extend_streak(&call.tool, streak);
    }

    /// Extends a streak. Calls of one turn count once: the model has not seen the first error yet when it writes the
    /// others.
    fn extend_streak(&mut self, tool: &str, mut new: Streak) {
        if let Some(old) = self.streaks.get(tool)
            && (&old.signature, &old.version) == (&new.signature, &new.version)
        {
            new.turns = old.turns + u32::from(old.last_turn != new.last_turn);
        }
        self.streaks.insert(tool.to_owned(), new);
    }

    pub(super) fn succeeded(&mut self, call: &TurnCall, output: &str, turn: u32) {
        let key = CallKey::of(call);
        // The world may have changed since another tool said no, or failed without saying why.
        let may_have_passed = |known: &Remembered| {
            let may_pass = matches!(known.class, ErrorClass::BusinessRule | ErrorClass::ToolFailed);
            may_pass && known.call.tool != call.tool && known.turn < turn
        };
        self.failures.retain(|known| known.call != key && !may_have_passed(known));
        self.streaks.remove(&call.tool);
        if call.polling {
            return;
        }
        let result = hash(output);
        self.recent.push(Same { call: key.clone(), result: result.clone(), times: 0 });
        keep_newest(&mut self.recent, RECENT);
        match self.results.iter_mut().find(|same| same.call == key) {
            Some(same) if same.result == result => same.times += 1,
            Some(same) => (same.result, same.times) = (result, 1),
            None => self.results.push(Same { call: key, result, times: 1 }),
        }
        keep_newest(&mut self.results, MOST);
    }
}

impl CallKey {
    fn of(call: &TurnCall) -> Self {
        Self { tool: call.tool.clone(), key: call.key.clone(), version: call.version.clone() }
    }
}

/// False for failures that say nothing about the call itself.
pub(super) const fn is_memorable(failure: &Failure) -> bool {
    use ErrorClass::{BudgetExhausted, Cancelled, Internal, RepeatedCall};
    failure.effect_possible || !matches!(failure.class, BudgetExhausted | Cancelled | Internal | RepeatedCall)
}

const fn is_passing(failure: &Failure) -> bool {
    use ErrorClass::{Lost, RateLimited, Timeout, ToolFailed, Unavailable};
    !failure.effect_possible && matches!(failure.class, Lost | RateLimited | Timeout | ToolFailed | Unavailable)
}

/// Writes an error in words, with every broken rule once: most messages name them already, in the model's language.
pub(super) fn in_words(message: String, failure: &Failure) -> String {
    let is_named = |detail: &FieldError| message.contains(&detail.path) && message.contains(&detail.allowed);
    let others: Vec<String> =
        failure.details.iter().filter(|detail| !is_named(detail)).map(|detail| format!("; {detail}")).collect();
    redial_proto::limits::shorten(&(message + &others.concat()), 1000)
}

/// Returns what makes two errors the same: not what was sent.
fn signature(failure: &Failure) -> String {
    let mut text = format!("{}\n{}", failure.class, failure.message);
    for detail in &failure.details {
        text.push_str(&format!("\n{} {}", detail.path, detail.rule));
    }
    hash(&text)
}

/// Fingerprints arguments: the same for the same JSON, whatever its white space and the order of its keys.
pub(super) fn canonical_key(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => hash(&with_sorted_keys(value).to_string()),
        Err(_) => hash(arguments.trim()),
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    let mut hex = String::with_capacity(24);
    for byte in &digest[..12] {
        hex.push_str(&format!("{byte:02x}"));
    }
    hex
}

fn keep_newest<T>(list: &mut Vec<T>, most: usize) {
    if list.len() > most {
        list.drain(..list.len() - most);
    }
}
