//! Sums of calls, attempts, models and places by hour and name.

use std::collections::{BTreeMap, HashMap};

use chrono::{DurationRound, TimeDelta};
use redial_proto::TurnUsage;

use super::histogram::Histogram;
use crate::Time;

/// What a row counts, and so what its names and counts mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Calls by state and error class (empty for calls that succeeded): [`CallSums`].
    Call,
    /// Attempts by worker: [`AttemptSums`].
    Attempt,
    /// Tool calls and turns of tasks (their tool is empty) by declared agent (empty if the task brought it) and model:
    /// [`ModelSums`].
    Model,
    /// Calls by what happened at a place of their arguments ([`What`]), its pointer and its rule.
    Place,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Call, Self::Attempt, Self::Model, Self::Place];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Attempt => "attempt",
            Self::Model => "model",
            Self::Place => "place",
        }
    }
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) hour: Time,
    pub(crate) tenant: String,
    pub(crate) tool: String,
    /// Of its kind; the rest is empty.
    pub(crate) names: [String; 3],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Of its kind, in the order of the fields of its type.
    pub(crate) counts: Vec<u64>,
    pub(crate) durations: Histogram,
}

impl Sums {
    pub(crate) fn new(counts: impl Into<Vec<u64>>) -> Self {
        Self { counts: counts.into(), durations: Histogram::default() }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (all, more) in self.counts.iter_mut().zip(&other.counts) {
            *all = all.saturating_add(*more);
        }
        self.durations.merge(&other.durations);
    }

    pub(crate) fn count(&self, position: usize) -> u64 {
        self.counts.get(position).copied().unwrap_or(0)
    }

    /// Reads the figures of answers from this position on.
    fn usage(&self, from: usize) -> UsageSums {
        let [answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown] =
            std::array::from_fn(|position| self.count(from + position));
        UsageSums { answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSums {
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSums {
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

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptSums {
    pub attempts: u64,
    /// Attempts that did not succeed.
    pub failed: u64,
    /// How long their tools ran, as far as their workers told it.
    pub durations: Histogram,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A rule was broken.
    Error,
    /// Something was repaired.
    Repair,
}

impl What {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Repair => "repair",
        }
    }
}

pub(crate) type Tally = BTreeMap<Key, Sums>;

/// Counted under this name: what an hour has no more room for.
pub(crate) const OTHER: &str = "(other)";
/// Places of one tool of a tenant in an hour: models invent names of arguments without end, and others need room too.
const PLACES_OF_TOOL: usize = 50;
/// Counted under this name: calls of tools that are not registered. Models and clients invent such names without end.
pub(crate) const UNKNOWN_TOOL: &str = "(unknown tool)";

pub(super) fn hour_of(time: Time) -> Time {
    // Only a time beyond the year 200,000 has none.
    time.duration_trunc(TimeDelta::hours(1)).unwrap_or(time)
}

/// Returns the start of the day, in UTC.
pub(super) fn day_of(time: Time) -> Time {
    time.duration_trunc(TimeDelta::days(1)).unwrap_or(time)
}

impl From<&Sums> for CallSums {
    fn from(sums: &Sums) -> Self {
        let [calls, retries, corrections] = std::array::from_fn(|position| sums.count(position));
        Self { calls, retries, corrections, durations: sums.durations.clone(), usage: sums.usage(3) }
    }
}

impl From<&Sums> for AttemptSums {
    fn from(sums: &Sums) -> Self {
        Self { attempts: sums.count(0), failed: sums.count(1), durations: sums.durations.clone() }
    }
}

impl From<&Sums> for ModelSums {
    fn from(sums: &Sums) -> Self {
        let [calls, right_at_once, repaired, wrong, one, two, three] =
            std::array::from_fn(|position| sums.count(position));
        Self { calls, right_at_once, repaired, wrong, corrected: [one, two, three], usage: sums.usage(7) }
    }
}

impl CallSums {
    pub fn add(&mut self, other: &Self) {
        let Self { calls, retries, corrections, durations, usage } = other;
        self.calls = self.calls.saturating_add(*calls);
        self.retries = self.retries.saturating_add(*retries);
        self.corrections = self.corrections.saturating_add(*corrections);
        self.durations.merge(durations);
        self.usage.add(*usage);
    }
}

/// More tokens, and more millionths of a US dollar, than an answer can have. What a model tells beyond is not known, and the sums of a day
/// would not fit into a number.
const MOST_OF_ONE: u64 = 1 << 32;

impl UsageSums {
    /// Counts one answer; `None` is an answer of which nothing is known. Estimates are not counted: the sum is a lower
    /// bound then.
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

    pub(crate) const fn counts(self) -> [u64; 6] {
        let Self { answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown } = self;
        [answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown]
    }

    fn add(&mut self, other: Self) {
        let mut sums = Sums::new(self.counts());
        sums.add(&Sums::new(other.counts()));
        *self = sums.usage(0);
    }
}

impl AttemptSums {
    pub fn add(&mut self, other: &Self) {
        let Self { attempts, failed, durations } = other;
        self.attempts = self.attempts.saturating_add(*attempts);
        self.failed = self.failed.saturating_add(*failed);
        self.durations.merge(durations);
    }
}

/// Splits sums by their hours.
pub(super) fn by_hour(tally: Tally) -> BTreeMap<Time, Tally> {
    let mut hours: BTreeMap<Time, Tally> = BTreeMap::new();
    for (key, sums) in tally {
        hours.entry(key.hour).or_default().insert(key, sums);
    }
    hours
}

/// Adds calls of an hour to the sums of that hour, and returns the sums that changed. A key that has no more room counts as
/// [`OTHER`]; `most` is the room of each kind.
pub(super) fn merge(hour: &mut Tally, slice: Tally, most: usize) -> Tally {
    let mut changed = Tally::new();
    // Rows of each kind, and of places of each tool.
    let mut rows: HashMap<(Kind, Option<(String, String)>), usize> = HashMap::new();
    let place = |key: &Key| (Kind::Place, Some((key.tenant.clone(), key.tool.clone())));
    let count = |rows: &mut HashMap<_, usize>, key: &Key| {
        *rows.entry((key.kind, None)).or_default() += 1;
        if key.kind == Kind::Place {
            *rows.entry(place(key)).or_default() += 1;
        }
    };
    for key in hour.keys() {
        count(&mut rows, key);
    }
    for (mut key, sums) in slice {
        if !hour.contains_key(&key) {
            if rows.get(&(key.kind, None)).is_some_and(|rows| *rows >= most) {
                key = key.other();
            } else if key.kind == Kind::Place && rows.get(&place(&key)).is_some_and(|rows| *rows >= PLACES_OF_TOOL) {
                key = key.without_names();
            }
            if !hour.contains_key(&key) {
                count(&mut rows, &key);
            }
        }
        let all = hour.entry(key.clone()).or_default();
        all.add(&sums);
        changed.insert(key, all.clone());
    }
    changed
}

impl Key {
    fn other(self) -> Self {
        Self { tenant: OTHER.into(), tool: OTHER.into(), ..self.without_names() }
    }

    /// Removes the names that come from outside.
    fn without_names(mut self) -> Self {
        let outside = match self.kind {
            Kind::Call => 3..3,
            Kind::Attempt => 0..1,
            Kind::Model => 0..2,
            Kind::Place => 1..3,
        };
        self.names[outside].fill(OTHER.to_owned());
        self
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

    fn key(kind: Kind, tenant: &str, tool: &str, names: [&str; 3]) -> Key {
        let (tenant, tool) = (tenant.to_owned(), tool.to_owned());
        Key { kind, hour: Time::UNIX_EPOCH, tenant, tool, names: names.map(str::to_owned) }
    }

    fn sum<'a>(sums: impl Iterator<Item = (&'a Key, &'a Sums)>) -> (usize, u64) {
        sums.fold((0, 0), |(rows, all), (_, sums)| (rows + 1, all + sums.count(0)))
    }

    #[test]
    fn an_hour_has_a_limited_number_of_rows_and_counts_every_call() {
        let call = |n: u32, state| key(Kind::Call, &format!("tenant {n}"), "t", [state, "", ""]);
        let mut hour = Tally::new();
        for n in (0..100).chain(0..5) {
            let worker = key(Kind::Attempt, "default", "t", [&format!("w{n}"), "", ""]);
            let rows = [call(n, "succeeded"), call(n, "failed"), worker];
            merge(&mut hour, rows.into_iter().map(|key| (key, Sums::new([1]))).collect(), 10);
        }
        let of = |kind| sum(hour.iter().filter(|(key, _)| key.kind == kind));
        assert_eq!((of(Kind::Call), of(Kind::Attempt)), ((10 + 2, 210), (10 + 1, 105)));
        assert_eq!(hour[&call(3, "failed")].count(0), 2, "what has a row keeps it");
    }

    #[test]
    fn invented_places_of_one_tool_leave_room_for_others() {
        let place = |tool: &str, pointer: &str| key(Kind::Place, "default", tool, ["error", pointer, "type"]);
        let workers = (0..60).map(|n| key(Kind::Attempt, "default", "quiet", [&format!("w{n}"), "", ""]));
        let workers: Vec<Key> = workers.collect();
        for at_once in [1, 500] {
            let mut hour = Tally::new();
            for first in (0..1_000).step_by(at_once) {
                let invented = (first..first + at_once).map(|n| place("noisy", &format!("/invented_{n}")));
                let slice = invented.chain(workers.clone()).map(|key| (key, Sums::new([1]))).collect();
                merge(&mut hour, slice, 200);
            }
            for n in 0..1_000 {
                merge(&mut hour, Tally::from([(place("quiet", &format!("/{}", n % 3)), Sums::new([1]))]), 200);
            }
            let places = |tool: &str| sum(hour.iter().filter(|(key, _)| key.kind == Kind::Place && key.tool == tool));
            assert_eq!((places("noisy"), places("quiet")), ((PLACES_OF_TOOL + 1, 1_000), (3, 1_000)), "{at_once}");
            let other = key(Kind::Place, "default", "noisy", ["error", OTHER, OTHER]);
            assert_eq!(hour[&other].count(0), 950);
        }
    }
}
