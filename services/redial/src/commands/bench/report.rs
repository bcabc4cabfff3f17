//! The table: what was measured, against what, and whether that meets its target.

use serde::Serialize;

use super::{
    plan::{Case, Plan},
    samples::{Metric, Samples},
    tasks,
};
use crate::output;

/// One line of the table. A ratio is the median of the rounds' ratios; values are medians.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    case: Case,
    what: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Against>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Against {
    what: &'static str,
    value: f64,
    ratio: f64,
}

/// What the ratio must be, or the value where there is nothing to compare with.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// A line of the table before it is measured.
struct Line {
    case: Case,
    what: String,
    unit: &'static str,
    metric: Metric,
    against: Option<(&'static str, Metric)>,
    target: Option<Target>,
}

/// The lines of the cases that were asked for.
pub(super) fn rows(plan: &Plan, samples: &Samples) -> Vec<Row> {
    let lines = speed(plan).into_iter().chain(cost());
    lines.filter(|line| plan.wants(line.case)).filter_map(|line| line.row(samples)).collect()
}

fn speed(plan: &Plan) -> Vec<Line> {
    use Metric as M;
    let [backlog, history, slow] = [plan.backlog, plan.history, plan.slow].map(grouped);
    let line = |case, what: &str, unit, metric| Line {
        case,
        what: what.to_owned(),
        unit,
        metric,
        against: None,
        target: None,
    };
    let rate = |case, what: &str, metric| line(case, &format!("calls/s, {what}"), "/s", metric);
    vec![
        rate(Case::A, "1 dispatcher, 1 worker", M::Calls).floor(M::FloorCalls).at_least(0.6),
        rate(Case::B, "2 dispatchers, 2 workers", M::CallsTwoWorkers).a().at_least(0.9),
        rate(Case::B, "2 dispatchers, 4 workers", M::CallsFourWorkers).a().at_least(0.9),
        line(Case::C, "submission to result, p50", "ms", M::P50).floor(M::FloorP50).at_most(2.0),
        line(Case::C, "submission to result, p99", "ms", M::P99).floor(M::FloorP99).at_most(4.0),
        rate(Case::D, &format!("backlog of {backlog}"), M::CallsBacklog).a().at_least(0.85),
        line(Case::D, "  jobs published again", "", M::Republished).at_most(f64::from(plan.backlog) / 100.0),
        rate(Case::E, &format!("history of {history}"), M::CallsHistory).a().at_least(0.9),
        line(Case::F, &format!("{slow} calls of 1 s: latest behind its ideal"), "ms", M::SlowLate).at_most(1_200.0),
        line(Case::F, "  peak memory of the worker", "MiB", M::WorkerMemory),
        line(Case::F, "  peak memory of the dispatcher", "MiB", M::DispatcherMemory),
        line(Case::G, &format!("tasks/s, 5 turns ({} calls) each", tasks::CALLS), "/s", M::Tasks),
    ]
}

fn cost() -> Vec<Line> {
    use Metric as M;
    let line = |what: &str, unit, metric| Line {
        case: Case::H,
        what: what.to_owned(),
        unit,
        metric,
        against: None,
        target: None,
    };
    vec![
        line("processor seconds per 1,000 calls", "s", M::Cpu).floor(M::FloorCpu),
        line("write-ahead log per 1,000 calls", "KB", M::Wal).floor(M::FloorWal).at_most(2.0),
        line("tables and indexes per 1,000 calls", "KB", M::Tables).floor(M::FloorTables),
    ]
}

impl Line {
    fn floor(self, metric: Metric) -> Self {
        Self { against: Some(("floor", metric)), ..self }
    }

    fn a(self) -> Self {
        Self { against: Some(("(a)", Metric::Calls)), ..self }
    }

    fn at_least(self, least: f64) -> Self {
        Self { target: Some(Target::AtLeast(least)), ..self }
    }

    fn at_most(self, most: f64) -> Self {
        Self { target: Some(Target::AtMost(most)), ..self }
    }

    /// With its values, if they were measured.
    fn row(self, samples: &Samples) -> Option<Row> {
        let Self { case, what, unit, metric, against, target } = self;
        let value = samples.median(metric)?;
        let against = match against {
            Some((what, other)) => {
                Some(Against { what, value: samples.median(other)?, ratio: samples.ratio(metric, other)? })
            }
            None => None,
        };
        let decisive = against.as_ref().map_or(value, |against| against.ratio);
        Some(Row { case, what, unit, value, against, target, met: target.map(|target| target.met_by(decisive)) })
    }
}

/// The table as people read it.
pub(super) fn render(rows: &[Row]) -> String {
    output::table(&["", "", "Redial", "against", "ratio", "target", ""], rows.iter().map(Row::cells).collect())
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let show = |value: f64| number(value, self.unit);
        let (against, ratio) = self.against.as_ref().map_or_else(Default::default, |against| {
            (format!("{} {}", against.what, show(against.value)), format!("{:.2}", against.ratio))
        });
        let limit = |value: f64| if self.against.is_some() { format!("{value:.2}") } else { show(value) };
        let target = match self.target {
            Some(Target::AtLeast(least)) => format!("≥ {}", limit(least)),
            Some(Target::AtMost(most)) => format!("≤ {}", limit(most)),
            None => String::new(),
        };
        let met = match self.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        vec![format!("({})", self.case), self.what.clone(), show(self.value), against, ratio, target, met.to_owned()]
    }
}

fn number(value: f64, unit: &str) -> String {
    let digits = match unit {
        "ms" if value < 100.0 => 2,
        "s" => 3,
        _ => 0,
    };
    let unit = if unit == "/s" { "" } else { unit };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// With commas, as people write large numbers.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::BenchArgs;

    fn plan(cases: Vec<Case>) -> Plan {
        Plan::new(&BenchArgs { cases, quick: false, calls: None, sequential: None, rounds: 1 })
    }

    fn samples() -> Samples {
        let mut samples = Samples::default();
        for (metric, value) in [
            (Metric::FloorCalls, 20_000.0),
            (Metric::Calls, 11_000.0),
            (Metric::CallsHistory, 10_500.0),
            (Metric::FloorP50, 1.25),
            (Metric::P50, 2.5),
            (Metric::SlowLate, 1_300.0),
            (Metric::WorkerMemory, 90.0),
            (Metric::FloorWal, 1_000.0),
            (Metric::Wal, 1_900.0),
        ] {
            samples.add(metric, value);
        }
        samples
    }

    #[test]
    fn every_line_names_its_target_and_whether_it_is_met() {
        let all = render(&rows(&plan(vec![]), &samples()));
        insta::assert_snapshot!(all);
    }

    #[test]
    fn only_cases_that_were_asked_for_are_shown() {
        let rows = rows(&plan(vec![Case::E]), &samples());
        assert_eq!(rows.iter().map(|row| row.case).collect::<Vec<_>>(), [Case::E]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([1, 999, 1_000, 5_000_000].map(grouped), ["1", "999", "1,000", "5,000,000"]);
    }
}
