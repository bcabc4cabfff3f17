//! Which cases are measured, and how much of each.

use clap::ValueEnum as _;
use serde::Serialize;

use crate::{
    cases::{self, Case, Metric, Row, Side},
    cli::RunArgs,
};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) cases: Vec<Case>,
    pub(crate) rounds: u32,
    /// Calls of each measurement of throughput.
    pub(crate) calls: u32,
    /// Calls of each measurement of latency.
    pub(crate) sequential: u32,
    /// Calls on record in case (e).
    pub(crate) history: u32,
    /// Calls in flight in case (m).
    pub(crate) waiting_http: u32,
    /// An older program is measured, too.
    pub(crate) against: bool,
}

impl Plan {
    pub(crate) fn new(args: &RunArgs) -> Self {
        let size = |full, quick| if args.quick { quick } else { full };
        Self {
            cases: if args.cases.is_empty() { Case::value_variants().to_vec() } else { args.cases.clone() },
            rounds: args.rounds,
            calls: args.calls.unwrap_or(size(100_000, 5_000)),
            sequential: args.sequential.unwrap_or(size(1_000, 100)),
            history: args.history.unwrap_or(size(5_000_000, 100_000)),
            waiting_http: size(10_000, 1_000),
            against: args.against.is_some(),
        }
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = cases::table(self.history, self.waiting_http);
        rows.retain(|row| {
            self.cases.contains(&row.case) && (self.against || row.keys().all(|(side, _)| side != Side::Before))
        });
        rows
    }

    /// True if a row shows one of these of a side.
    pub(crate) fn wants(&self, side: Side, metrics: &[Metric]) -> bool {
        self.rows().iter().flat_map(Row::keys).any(|(of, metric)| of == side && metrics.contains(&metric))
    }

    /// Returns the sides of a round, which begins at 1, in an order that changes from round to round: then none always
    /// runs after the same neighbour.
    pub(crate) fn sides(&self, round: u32) -> Vec<Side> {
        let mut sides: Vec<Side> = self.rows().iter().flat_map(Row::keys).map(|(side, _)| side).collect();
        sides.sort_unstable();
        sides.dedup();
        let by = usize::try_from(round - 1).unwrap_or_default() % sides.len().max(1);
        sides.rotate_left(by);
        sides
    }
}
