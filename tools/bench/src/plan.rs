//! Which cases are measured, and how much of each.

use serde::Serialize;

use crate::{case::Case, cli::RunArgs};

/// Which cases, and their sizes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) cases: Vec<Case>,
    pub(crate) rounds: u32,
    /// Calls of each measurement of throughput.
    pub(crate) calls: u32,
    /// Calls of each measurement of latency.
    pub(crate) sequential: u32,
    /// Calls that wait in case (d).
    pub(crate) backlog: u32,
    /// Ended calls on record in case (e).
    pub(crate) history: u32,
    /// Calls in flight in cases (f) and (m).
    pub(crate) slow: u32,
    /// Tasks of case (g).
    pub(crate) tasks: u32,
    /// Calls that wait beside those that are measured in cases (i) and (j).
    pub(crate) waiting: u32,
    /// Calls of a pool without workers in case (k).
    pub(crate) unserved: u32,
    /// An older program is measured, too.
    pub(crate) against: bool,
}

impl Plan {
    pub(crate) fn new(args: &RunArgs) -> Self {
        let size = |full, quick| if args.quick { quick } else { full };
        let mut cases = if args.cases.is_empty() { usual() } else { args.cases.clone() };
        cases.sort_unstable();
        cases.dedup();
        Self {
            cases,
            rounds: args.rounds,
            calls: args.calls.unwrap_or(size(100_000, 5_000)),
            sequential: args.sequential.unwrap_or(size(1_000, 100)),
            backlog: size(200_000, 20_000),
            history: args.history.unwrap_or(size(5_000_000, 100_000)),
            slow: size(10_000, 1_000),
            tasks: size(1_000, 100),
            waiting: size(100_000, 5_000),
            unserved: size(1_000_000, 20_000),
            against: args.against.is_some(),
        }
    }

    /// Of these cases, with the usual sizes.
    #[cfg(test)]
    pub(crate) fn of(cases: &[Case]) -> Self {
        Self::new(&RunArgs { cases: cases.to_vec(), ..crate::cli::defaults() })
    }

    pub(crate) fn wants(&self, case: Case) -> bool {
        self.cases.contains(&case)
    }

    /// Others are compared with it.
    pub(crate) fn wants_a(&self) -> bool {
        self.cases.iter().any(|case| matches!(case, Case::A | Case::B | Case::D | Case::E | Case::H | Case::I))
    }

    /// How long all this takes, roughly, in seconds: from what it took on two shared cores. Other machines need less.
    pub(crate) fn estimate(&self) -> f64 {
        let seconds = |case: &Case| match case {
            // Measured together.
            Case::H if self.wants(Case::A) => 0.0,
            Case::A | Case::H => 8.0 + f64::from(self.calls) / 12_000.0 * 3.0,
            Case::B => 6.0 + f64::from(self.calls) / 12_000.0 * 2.0,
            Case::C => 2.0 + f64::from(self.sequential) / 150.0,
            Case::D => 5.0 + f64::from(self.backlog) / 6_000.0,
            Case::E => {
                3.0 + f64::from(self.calls) / 12_000.0 + f64::from(self.history) / 35_000.0 / f64::from(self.rounds)
            }
            Case::F => 5.0 + f64::from(self.slow) / 5_000.0,
            Case::G => 3.0 + f64::from(self.tasks) / 100.0,
            Case::I => 6.0 + f64::from(self.waiting) / 6_000.0 + f64::from(self.calls) / 12_000.0,
            Case::K => {
                let once = (20.0 + f64::from(self.unserved) / 8_000.0) / f64::from(self.rounds);
                once + 30.0 + 4.0 * f64::from(self.calls) / 10_000.0 + 2.0 * f64::from(self.sequential) / 150.0
            }
            Case::L => 6.0 + f64::from(self.calls) / 12_000.0 * 2.0 + f64::from(self.sequential) / 75.0,
            Case::M => 6.0 + f64::from(self.slow) / 2_000.0,
            Case::J => 5.0 + f64::from(self.waiting) / 12_000.0 + 2.0 * f64::from(self.sequential) / 150.0,
        };
        5.0 + self.cases.iter().map(seconds).sum::<f64>() * f64::from(self.rounds)
    }
}

/// The cases of a run that names none.
fn usual() -> Vec<Case> {
    Case::ALL.into_iter().filter(|case| *case != Case::K).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(cases: &[Case], quick: bool) -> RunArgs {
        RunArgs { cases: cases.to_vec(), quick, ..crate::cli::defaults() }
    }

    #[test]
    fn no_case_is_every_case_and_what_others_are_compared_with_is_measured_too() {
        assert_eq!(Plan::new(&args(&[], false)).cases, usual());
        let plan = Plan::new(&args(&[Case::D, Case::C, Case::D], false));
        assert_eq!(plan.cases, [Case::C, Case::D]);
        assert!(plan.wants_a() && !plan.wants(Case::A));
        assert!(!Plan::new(&args(&[Case::C, Case::F, Case::G], false)).wants_a());
    }

    #[test]
    fn everything_takes_less_than_forty_minutes() {
        assert!(Plan::new(&args(&[], false)).estimate() < 40.0 * 60.0);
        assert!(Plan::new(&args(&[], true)).estimate() < 6.0 * 60.0);
    }
}
