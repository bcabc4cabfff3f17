//! The table: what was measured, against what, and whether that meets its target.

use comfy_table::{Table, presets::NOTHING};
use serde::{Deserialize, Serialize};

use crate::{
    case::Case,
    meter::Part,
    plan::Plan,
    samples::{Metric, Samples, Side},
    tasks,
};

/// What was measured. A ratio is the median of the rounds' ratios; values are medians.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) case: Case,
    pub(crate) what: String,
    pub(crate) unit: String,
    pub(crate) value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) against: Option<Against>,
}

/// What a figure is compared with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Against {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) ratio: f64,
}

/// A row of the table: a figure, and whether it meets its target.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) figure: Figure,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
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

/// A row of the table before it is measured.
struct Unmeasured {
    case: Case,
    what: String,
    unit: &'static str,
    metric: Metric,
    against: Option<(&'static str, Metric)>,
    target: Option<Target>,
}

/// What figures are compared with: the baselines, and an older program.
const PACKED: &str = "packed baseline";
const PLAIN: &str = "message per call";
const SEQUENTIAL: &str = "baseline";
const BEFORE: &str = "older program";

/// The rows of the cases that were asked for.
pub(crate) fn rows(plan: &Plan, samples: &Samples) -> Vec<Row> {
    let all = speed(plan).into_iter().chain(cost());
    all.filter(|row| plan.wants(row.case)).filter_map(|row| row.measured(samples)).collect()
}

fn speed(plan: &Plan) -> Vec<Unmeasured> {
    use Metric as M;
    let [backlog, history, slow, waiting, unserved] =
        [plan.backlog, plan.history, plan.slow, plan.waiting, plan.unserved].map(grouped);
    let row = |case, what: &str, unit, metric| Unmeasured {
        case,
        what: what.to_owned(),
        unit,
        metric,
        against: None,
        target: None,
    };
    let rate = |case, what: &str, metric| row(case, &format!("calls/s, {what}"), "/s", metric);
    vec![
        rate(Case::A, "1 dispatcher, 1 worker", M::Calls).against(PACKED, M::PackedCalls).at_least(0.6),
        row(Case::A, "  the same", "/s", M::Calls).against(PLAIN, M::PlainCalls),
        row(Case::A, "  the same", "/s", M::Calls).against(BEFORE, M::BeforeCalls),
        rate(Case::B, "2 dispatchers, 2 workers", M::CallsTwoWorkers).a().at_least(0.95),
        rate(Case::B, "2 dispatchers, 4 workers", M::CallsFourWorkers).a().at_least(0.95),
        row(Case::C, "submission to result, p50", "ms", M::P50).against(SEQUENTIAL, M::BaselineP50).at_most(1.3),
        row(Case::C, "  the same", "ms", M::P50).against(BEFORE, M::BeforeP50),
        row(Case::C, "submission to result, p99", "ms", M::P99).against(SEQUENTIAL, M::BaselineP99).at_most(4.0),
        rate(Case::D, &format!("backlog of {backlog}"), M::CallsBacklog).a().at_least(0.85),
        row(Case::D, "  jobs published again", "", M::Republished).at_most(f64::from(plan.backlog) / 100.0),
        rate(Case::E, &format!("history of {history}"), M::CallsHistory).a().at_least(0.95),
        row(Case::F, &format!("{slow} calls of 1 s: latest behind its ideal"), "ms", M::SlowLate).at_most(1_200.0),
        row(Case::F, "  peak memory of the worker", "MiB", M::WorkerMemory),
        row(Case::F, "  peak memory of the dispatcher", "MiB", M::DispatcherMemory),
        row(Case::G, &format!("tasks/s, 5 turns ({} calls) each", tasks::CALLS), "/s", M::Tasks),
        rate(Case::I, &format!("{waiting} calls wait for a tool that is down"), M::CallsBesideOutage).a().at_least(0.9),
        row(Case::J, &format!("p99 beside the backlog of {waiting} in another pool"), "ms", M::PoolP99BesideBacklog)
            .against("without", M::PoolP99)
            .at_most(1.5),
        rate(Case::K, &format!("beside {unserved} calls that nobody can run"), M::CallsBesideUnserved)
            .against("without", M::CallsAlone)
            .at_least(0.9),
        row(Case::K, "  submission to result, p99", "ms", M::P99BesideUnserved)
            .against("without", M::P99Alone)
            .at_most(1.5),
        row(Case::K, "  store of NATS", "MB", M::NatsStore).at_most(50.0),
        row(Case::K, "  from a wipe of it to the next result", "s", M::Healed).at_most(5.0),
        rate(Case::K, "2 workers, one has a tool more", M::CallsUnevenPool)
            .against("same tools", M::CallsEvenPool)
            .at_least(0.9),
        rate(Case::L, "NDJSON over HTTP", M::CallsHttp).against("batches over NATS", M::CallsNats).at_least(0.8),
        row(Case::L, "  call and wait over HTTP, p50", "ms", M::P50Http).against("over NATS", M::P50Nats).at_most(1.3),
        row(Case::M, &format!("peak memory of a worker with {slow} waiting HTTP calls"), "MB", M::HttpWorkerMemory)
            .at_most(200.0),
    ]
}

fn cost() -> Vec<Unmeasured> {
    use Metric as M;
    let row = |what: &str, unit, metric| Unmeasured {
        case: Case::H,
        what: what.to_owned(),
        unit,
        metric,
        against: None,
        target: None,
    };
    vec![
        row("processor seconds per 1,000 calls", "s", M::Cpu).against(PACKED, M::PackedCpu).at_most(1.89),
        row("  the same", "s", M::Cpu).against(PLAIN, M::PlainCpu),
        row("  the same", "s", M::Cpu).against(BEFORE, M::BeforeCpu),
        row("write-ahead log per 1,000 calls", "KB", M::Wal).against(PACKED, M::PackedWal),
        row("  the same", "KB", M::Wal).against(BEFORE, M::BeforeWal).at_most(1.0),
        row("tables and indexes per 1,000 calls", "KB", M::Tables).against(PACKED, M::PackedTables),
        row("  the same", "KB", M::Tables).against(BEFORE, M::BeforeTables),
    ]
}

impl Unmeasured {
    fn a(self) -> Self {
        self.against("(a)", Metric::Calls)
    }

    fn against(self, what: &'static str, metric: Metric) -> Self {
        Self { against: Some((what, metric)), ..self }
    }

    fn at_least(self, least: f64) -> Self {
        Self { target: Some(Target::AtLeast(least)), ..self }
    }

    fn at_most(self, most: f64) -> Self {
        Self { target: Some(Target::AtMost(most)), ..self }
    }

    /// With its values, if they were measured.
    fn measured(self, samples: &Samples) -> Option<Row> {
        let Self { case, what, unit, metric, against, target } = self;
        let value = samples.median(metric)?;
        let against = match against {
            Some((what, other)) => Some(Against {
                what: what.to_owned(),
                value: samples.median(other)?,
                ratio: samples.ratio(metric, other)?,
            }),
            None => None,
        };
        let figure = Figure { case, what, unit: unit.to_owned(), value, against };
        let met = target.map(|target| target.met_by(figure.decisive()));
        Some(Row { figure, target, met })
    }
}

impl Figure {
    /// What a target or another run is compared with: the ratio if there is one.
    pub(crate) fn decisive(&self) -> f64 {
        self.against.as_ref().map_or(self.value, |against| against.ratio)
    }
}

/// The table for people.
pub(crate) fn render(rows: &[Row]) -> String {
    table(&["", "", "Redial", "against", "ratio", "target", ""], rows.iter().map(Row::cells))
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let Self { figure, target, met } = self;
        let show = |value: f64| number(value, &figure.unit);
        let (against, ratio) = figure.against.as_ref().map_or_else(Default::default, |against| {
            (format!("{} {}", against.what, show(against.value)), format!("{:.2}", against.ratio))
        });
        let limit = |value: f64| if figure.against.is_some() { format!("{value:.2}") } else { show(value) };
        let target = match *target {
            Some(Target::AtLeast(least)) => format!("≥ {}", limit(least)),
            Some(Target::AtMost(most)) => format!("≤ {}", limit(most)),
            None => String::new(),
        };
        let met = met.map_or("", |met| if met { "met" } else { "MISSED" }).to_owned();
        vec![format!("({})", figure.case), figure.what.clone(), show(figure.value), against, ratio, target, met]
    }
}

/// The processor seconds by the part that used them; `None` if they were not measured.
pub(crate) fn parts(samples: &Samples) -> Option<String> {
    const PARTS: [(Part, &str); 5] = [
        (Part::Postgres, "Postgres"),
        (Part::Nats, "NATS"),
        (Part::Dispatcher, "dispatcher"),
        (Part::Worker, "worker"),
        (Part::Client, "client"),
    ];
    let sides = [(Side::Redial, "Redial"), (Side::Packed, PACKED), (Side::Plain, PLAIN), (Side::Before, BEFORE)];
    let rows: Vec<Vec<String>> = sides
        .into_iter()
        .filter_map(|(side, name)| Some((samples.parts(side)?, name)))
        .map(|(parts, name)| {
            let cells = PARTS.iter().map(|(part, _)| parts.get(part).map(|s| format!("{s:.3}")).unwrap_or_default());
            [name.to_owned()].into_iter().chain(cells).collect()
        })
        .collect();
    let head: Vec<&str> =
        ["processor seconds per 1,000 calls"].into_iter().chain(PARTS.iter().map(|(_, name)| *name)).collect();
    (!rows.is_empty()).then(|| table(&head, rows.into_iter()))
}

/// A table with a head and no lines.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

/// A value with its unit.
pub(crate) fn number(value: f64, unit: &str) -> String {
    let digits = match unit {
        "ms" if value < 100.0 => 2,
        "s" => 3,
        _ => 0,
    };
    let unit = if unit == "/s" { "" } else { unit };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// With commas between thousands.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Cost;

    fn samples() -> Samples {
        let mut samples = Samples::default();
        for (metric, value) in [
            (Metric::PackedCalls, 20_000.0),
            (Metric::BeforeCalls, 5_000.0),
            (Metric::Calls, 11_000.0),
            (Metric::CallsHistory, 10_500.0),
            (Metric::BaselineP50, 1.25),
            (Metric::P50, 2.5),
            (Metric::SlowLate, 1_300.0),
            (Metric::WorkerMemory, 90.0),
            (Metric::PackedWal, 1_000.0),
            (Metric::Wal, 1_900.0),
        ] {
            samples.add(metric, value);
        }
        samples
    }

    #[test]
    fn every_row_names_its_target_and_whether_it_is_met() {
        let all = render(&rows(&Plan::of(&[]), &samples()));
        insta::assert_snapshot!(all);
    }

    #[test]
    fn processor_time_is_told_by_its_parts() {
        let mut samples = Samples::default();
        assert_eq!(parts(&samples), None);
        let cost = |parts: &[(Part, f64)]| Cost { parts: parts.iter().copied().collect(), wal: 1.0, tables: 1.0 };
        samples.add_side(Side::Redial, 1.0, &cost(&[(Part::Postgres, 0.0904), (Part::Worker, 0.04)]));
        samples.add_side(Side::Packed, 1.0, &cost(&[(Part::Postgres, 0.03), (Part::Client, 0.012)]));
        insta::assert_snapshot!(parts(&samples).unwrap());
    }

    #[test]
    fn only_cases_that_were_asked_for_are_shown() {
        let rows = rows(&Plan::of(&[Case::E]), &samples());
        assert_eq!(rows.iter().map(|row| row.figure.case).collect::<Vec<_>>(), [Case::E]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([1, 999, 1_000, 5_000_000].map(grouped), ["1", "999", "1,000", "5,000,000"]);
    }
}
