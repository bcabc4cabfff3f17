//! What is compared with something else is measured in turns, in an order that changes from round to round: then neither side
//! always runs after the same neighbour.

use crate::{case::Case, plan::Plan};

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// One dispatcher, one worker: (a), (c), (h).
    Redial,
    /// The baseline with 50 calls in a message.
    Packed,
    /// The baseline with a call in a message; also that of latencies.
    Plain,
    /// The older program: one dispatcher, one worker.
    Before,
    /// Two dispatchers, two workers.
    TwoWorkers,
    /// Two dispatchers, four workers.
    FourWorkers,
    /// One dispatcher, one worker, beside a long history.
    History,
}

impl Turn {
    /// The turns of a round, which begins at 1.
    pub(crate) fn of_round(plan: &Plan, round: u32) -> Vec<Self> {
        let (costs, latencies) = (plan.wants(Case::A) || plan.wants(Case::H), plan.wants(Case::C));
        let wanted = [
            (Self::Redial, plan.wants_a() || latencies),
            (Self::Packed, costs),
            (Self::Plain, costs || latencies),
            (Self::Before, plan.against && (costs || latencies)),
            (Self::TwoWorkers, plan.wants(Case::B)),
            (Self::FourWorkers, plan.wants(Case::B)),
            (Self::History, plan.wants(Case::E)),
        ];
        let mut turns: Vec<Self> = wanted.into_iter().filter_map(|(turn, wanted)| wanted.then_some(turn)).collect();
        if !turns.is_empty() {
            let by = usize::try_from(round - 1).unwrap_or_default() % turns.len();
            turns.rotate_left(by);
        }
        turns
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Redial => "(a), (c), (h): one dispatcher, one worker",
            Self::Packed => "the packed baseline",
            Self::Plain => "the baseline with a call in a message",
            Self::Before => "the older program",
            Self::TwoWorkers => "(b): two dispatchers, two workers",
            Self::FourWorkers => "(b): two dispatchers, four workers",
            Self::History => "(e): with a long history",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_turn_is_first_once_and_only_what_is_wanted_is_measured() {
        let plan = |cases: &[Case], against| Plan { against, ..Plan::of(cases) };
        let turns = |round| Turn::of_round(&plan(&[Case::A, Case::H], true), round);
        assert_eq!(turns(1), [Turn::Redial, Turn::Packed, Turn::Plain, Turn::Before]);
        assert_eq!(turns(2), [Turn::Packed, Turn::Plain, Turn::Before, Turn::Redial]);
        assert_eq!(turns(5), turns(1));
        assert_eq!(Turn::of_round(&plan(&[Case::C], false), 1), [Turn::Redial, Turn::Plain]);
        assert_eq!(Turn::of_round(&plan(&[Case::E], true), 2), [Turn::History, Turn::Redial]);
        assert_eq!(Turn::of_round(&plan(&[Case::F], true), 1), []);
    }
}
