//! Sums of calls and attempts by hour and name.

use std::collections::{BTreeMap, HashMap};

use chrono::{DurationRound, TimeDelta};
use redial_proto::TurnUsage;

use super::histogram::Histogram;
use crate::Time;

/// What calls of one kind are counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallKey {
    pub(crate) hour: Time,
    pub(crate) tenant: String,
    pub(crate) tool: String,
    pub(crate) state: String,
    /// Empty for calls that succeeded.
    pub(crate) class: String,
}

/// Sums over calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSums {
    /// Calls.
    pub calls: u64,
    /// Attempts beyond the first of each.
    pub retries: u64,
    /// Calls that correct an earlier one of their task.
    pub corrections: u64,
    /// From submission to end, of those that had an attempt.
    pub durations: Histogram,
    /// What models read and wrote and cost, as far as it is known.
    pub usage: UsageSums,
}

/// Sums over the answers of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// Answers.
    pub answers: u64,
    /// Tokens that they read.
    pub input_tokens: u64,
    /// Tokens that they wrote.
    pub output_tokens: u64,
    /// Price in millionths of a US dollar.
    pub cost_micros: u64,
    /// Answers of which a number of tokens is not known.
    pub tokens_unknown: u64,
    /// Answers of which the price is not known.
    pub cost_unknown: u64,
}

/// What attempts of one kind are counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttemptKey {
    pub(crate) hour: Time,
    pub(crate) tenant: String,
    pub(crate) worker: String,
    pub(crate) tool: String,
}

/// Sums over attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptSums {
    /// Attempts.
    pub attempts: u64,
    /// Those that did not succeed.
    pub failed: u64,
    /// How long their tools ran, as far as their workers told it.
    pub durations: Histogram,
}

/// What tool calls and turns of models in tasks are counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ModelKey {
    pub(crate) hour: Time,
    pub(crate) tenant: String,
    /// Empty for an agent that was given with its task.
    pub(crate) agent: String,
    pub(crate) model: String,
    /// Empty for turns.
    pub(crate) tool: String,
}

/// Sums over tool calls and turns of models: a call of a task counts in one of `right_at_once`, `repaired`, `wrong` and `corrected`;
/// corrections that are wrong again, and calls that ended for another reason than their arguments, in none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSums {
    /// Calls, or turns.
    pub calls: u64,
    /// Right as they were written, and no correction.
    pub right_at_once: u64,
    /// Right after a repair in code that cost no turn, and no correction.
    pub repaired: u64,
    /// Fed back to the model, and no correction.
    pub wrong: u64,
    /// Right after one, two, and three or more turns of corrections.
    pub corrected: [u64; 3],
    /// Of turns.
    pub usage: UsageSums,
}

/// What places in arguments are counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlaceKey {
    pub(crate) hour: Time,
    pub(crate) tenant: String,
    pub(crate) tool: String,
    pub(crate) what: What,
    pub(crate) pointer: String,
    pub(crate) rule: String,
}

/// What happened at a place in arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A rule was broken.
    Error,
    /// Something was repaired.
    Repair,
}

impl What {
    /// As the tables have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Repair => "repair",
        }
    }
}

/// Sums by key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) calls: BTreeMap<CallKey, CallSums>,
    pub(crate) attempts: BTreeMap<AttemptKey, AttemptSums>,
    pub(crate) models: BTreeMap<ModelKey, ModelSums>,
    /// What is to be added to the sums of models of days.
    pub(crate) days: BTreeMap<ModelKey, ModelSums>,
    /// Calls by place.
    pub(crate) places: BTreeMap<PlaceKey, u64>,
}

/// Counted under this name: what an hour has no more room for.
pub(crate) const OTHER: &str = "(other)";
/// Places of one tool of a tenant in an hour: models invent names of arguments without end, and others need room too.
const PLACES_OF_TOOL: usize = 50;
/// Counted under this name: calls of tools that are not registered. Models and clients invent such names without end.
pub(crate) const UNKNOWN_TOOL: &str = "(unknown tool)";

/// The start of the hour.
pub(super) fn hour_of(time: Time) -> Time {
    // Only a time beyond the year 200,000 has none.
    time.duration_trunc(TimeDelta::hours(1)).unwrap_or(time)
}

/// The start of the day, in UTC.
pub(super) fn day_of(time: Time) -> Time {
    time.duration_trunc(TimeDelta::days(1)).unwrap_or(time)
}

impl CallSums {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let Self { calls, retries, corrections, durations, usage } = other;
        self.calls = self.calls.saturating_add(*calls);
        self.retries = self.retries.saturating_add(*retries);
        self.corrections = self.corrections.saturating_add(*corrections);
        self.durations.merge(durations);
        self.usage.add(*usage);
    }
}

impl ModelSums {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let Self { calls, right_at_once, repaired, wrong, corrected, usage } = other;
        self.calls = self.calls.saturating_add(*calls);
        self.right_at_once = self.right_at_once.saturating_add(*right_at_once);
        self.repaired = self.repaired.saturating_add(*repaired);
        self.wrong = self.wrong.saturating_add(*wrong);
        for (all, more) in self.corrected.iter_mut().zip(corrected) {
            *all = all.saturating_add(*more);
        }
        self.usage.add(*usage);
    }
}

/// More tokens, and more millionths of a US dollar, than an answer can have. What a model tells beyond is not known, and the sums of a day
/// would not fit into a number.
const MOST_OF_ONE: u64 = 1 << 32;

impl UsageSums {
    /// Of one answer; `None` is an answer of which nothing is known. Estimates are not counted: the sum is a lower bound then.
    pub(crate) fn of(usage: Option<TurnUsage>) -> Self {
        let told = usage.unwrap_or_default();
        let [input_tokens, output_tokens, cost_micros] = [told.input_tokens, told.output_tokens, told.cost_micros]
            .map(|number| number.filter(|number| *number <= MOST_OF_ONE));
        Self {
            answers: 1,
            input_tokens: input_tokens.unwrap_or_default(),
            output_tokens: output_tokens.unwrap_or_default(),
            cost_micros: cost_micros.unwrap_or_default(),
            tokens_unknown: (input_tokens.is_none() || output_tokens.is_none()).into(),
            cost_unknown: cost_micros.is_none().into(),
        }
    }

    fn add(&mut self, other: Self) {
        let Self { answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown } = other;
        self.answers = self.answers.saturating_add(answers);
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(cost_micros);
        self.tokens_unknown = self.tokens_unknown.saturating_add(tokens_unknown);
        self.cost_unknown = self.cost_unknown.saturating_add(cost_unknown);
    }
}

impl AttemptSums {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let Self { attempts, failed, durations } = other;
        self.attempts = self.attempts.saturating_add(*attempts);
        self.failed = self.failed.saturating_add(*failed);
        self.durations.merge(durations);
    }
}

impl Tally {
    /// Takes it apart.
    pub(crate) fn by_hour(self) -> BTreeMap<Time, Self> {
        let mut hours: BTreeMap<Time, Self> = BTreeMap::new();
        for (key, sums) in self.calls {
            hours.entry(key.hour).or_default().calls.insert(key, sums);
        }
        for (key, sums) in self.attempts {
            hours.entry(key.hour).or_default().attempts.insert(key, sums);
        }
        for (key, sums) in self.models {
            hours.entry(key.hour).or_default().models.insert(key, sums);
        }
        for (key, calls) in self.places {
            hours.entry(key.hour).or_default().places.insert(key, calls);
        }
        hours
    }

    /// Adds calls of an hour to the sums of that hour, which `self` holds, and returns the sums that changed. A key that has no more room
    /// counts as [`OTHER`]; `most` is the room for calls, and that for attempts.
    pub(crate) fn merge(&mut self, slice: Self, most: usize) -> Self {
        let mut changed = Self::default();
        for (key, sums) in slice.calls {
            let full = self.calls.len() >= most && !self.calls.contains_key(&key);
            let key = if full { CallKey { tenant: OTHER.into(), tool: OTHER.into(), ..key } } else { key };
            let all = self.calls.entry(key.clone()).or_default();
            all.add(&sums);
            changed.calls.insert(key, all.clone());
        }
        for (key, sums) in slice.attempts {
            let full = self.attempts.len() >= most && !self.attempts.contains_key(&key);
            let other = |hour| AttemptKey { hour, tenant: OTHER.into(), worker: OTHER.into(), tool: OTHER.into() };
            let key = if full { other(key.hour) } else { key };
            let all = self.attempts.entry(key.clone()).or_default();
            all.add(&sums);
            changed.attempts.insert(key, all.clone());
        }
        for (key, sums) in slice.models {
            let full = self.models.len() >= most && !self.models.contains_key(&key);
            let key = if full { key.other() } else { key };
            let day = ModelKey { hour: day_of(key.hour), ..key.clone() };
            changed.days.entry(day).or_default().add(&sums);
            let all = self.models.entry(key.clone()).or_default();
            all.add(&sums);
            changed.models.insert(key, all.clone());
        }
        let mut of_tools: HashMap<(String, String), usize> = HashMap::new();
        for key in self.places.keys() {
            *of_tools.entry(key.of_tool()).or_default() += 1;
        }
        for (key, calls) in slice.places {
            let known = self.places.contains_key(&key);
            let of_tool = of_tools.entry(key.of_tool()).or_default();
            let key = match (known, *of_tool >= PLACES_OF_TOOL, self.places.len() >= most) {
                (true, ..) | (_, false, false) => key,
                (false, true, false) => key.other_place(),
                (false, _, true) => key.other(),
            };
            *of_tool += usize::from(!known);
            let all = self.places.entry(key.clone()).or_default();
            *all = all.saturating_add(calls);
            changed.places.insert(key, *all);
        }
        changed
    }
}

impl ModelKey {
    fn other(self) -> Self {
        Self { tenant: OTHER.into(), agent: OTHER.into(), model: OTHER.into(), tool: OTHER.into(), ..self }
    }
}

impl PlaceKey {
    fn of_tool(&self) -> (String, String) {
        (self.tenant.clone(), self.tool.clone())
    }

    fn other_place(self) -> Self {
        Self { pointer: OTHER.into(), rule: OTHER.into(), ..self }
    }

    fn other(self) -> Self {
        Self { tenant: OTHER.into(), tool: OTHER.into(), pointer: OTHER.into(), rule: OTHER.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of a day are added up by Postgres, which refuses what does not fit.
    #[test]
    fn a_model_that_lies_about_its_tokens_overflows_no_day() {
        let (most, no) = (Some(u64::MAX), None);
        let told = TurnUsage { input_tokens: most, output_tokens: most, cost_micros: most, ..TurnUsage::default() };
        let UsageSums { input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown, .. } =
            UsageSums::of(Some(told));
        assert_eq!((tokens_unknown, cost_unknown), (1, 1));
        for of_one in [input_tokens, output_tokens, cost_micros] {
            assert!(i64::try_from(of_one * 1_000_000_000).is_ok(), "a thousand million answers");
        }
        let honest = TurnUsage { input_tokens: Some(2_000_000), output_tokens: no, ..TurnUsage::default() };
        assert_eq!(UsageSums::of(Some(honest)).input_tokens, 2_000_000);
    }

    #[test]
    fn an_hour_has_a_limited_number_of_rows_and_counts_every_call() {
        let key = |n: u32, state: &str| CallKey {
            hour: Time::UNIX_EPOCH,
            tenant: format!("tenant {n}"),
            tool: "t".to_owned(),
            state: state.to_owned(),
            class: String::new(),
        };
        let worker = |n: u32| AttemptKey {
            hour: Time::UNIX_EPOCH,
            tenant: "default".to_owned(),
            worker: format!("w{n}"),
            tool: "t".to_owned(),
        };
        let mut hour = Tally::default();
        for n in (0..100).chain(0..5) {
            let mut slice = Tally::default();
            for state in ["succeeded", "failed"] {
                slice.calls.insert(key(n, state), CallSums { calls: 1, ..CallSums::default() });
            }
            slice.attempts.insert(worker(n), AttemptSums { attempts: 1, ..AttemptSums::default() });
            hour.merge(slice, 10);
        }
        assert_eq!((hour.calls.len(), hour.attempts.len()), (10 + 2, 10 + 1));
        assert_eq!(hour.calls.values().map(|sums| sums.calls).sum::<u64>(), 210);
        assert_eq!(hour.attempts.values().map(|sums| sums.attempts).sum::<u64>(), 105);
        assert_eq!(hour.calls[&key(3, "failed")].calls, 2, "what has a row keeps it");
    }

    #[test]
    fn invented_places_of_one_tool_leave_room_for_others() {
        let key = |tool: &str, pointer: String| PlaceKey {
            hour: Time::UNIX_EPOCH,
            tenant: "default".to_owned(),
            tool: tool.to_owned(),
            what: What::Error,
            pointer,
            rule: "additionalProperties".to_owned(),
        };
        let mut hour = Tally::default();
        for n in 0..1_000 {
            let mut slice = Tally::default();
            slice.places.insert(key("noisy", format!("/invented_{n}")), 1);
            slice.places.insert(key("quiet", format!("/{}", n % 3)), 1);
            hour.merge(slice, 200);
        }
        let of = |tool: &str| -> Vec<u64> {
            hour.places.iter().filter(|(key, _)| key.tool == tool).map(|(_, calls)| *calls).collect()
        };
        assert_eq!((of("noisy").len(), of("noisy").iter().sum::<u64>()), (PLACES_OF_TOOL + 1, 1_000));
        assert_eq!(of("quiet"), [334, 333, 333]);
        let other = PlaceKey { rule: OTHER.to_owned(), ..key("noisy", OTHER.to_owned()) };
        assert_eq!(hour.places[&other], 950);
    }
}
