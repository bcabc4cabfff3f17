//! The table: what was measured, against what, and whether that meets its target.

use comfy_table::{Table, presets::NOTHING};
use serde::Serialize;

use crate::{
    cases::{BEFORE, Case, PACKED, PLAIN, Row, Side, Target},
    meter::Part,
    plan::Plan,
    samples::Samples,
};

/// What was measured. A ratio is the median of the rounds' ratios; values are medians.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
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

/// What a figure is compared with.
#[derive(Debug, Serialize)]
struct Against {
    what: &'static str,
    value: f64,
    ratio: f64,
}

/// Makes the rows of the plan from what was measured.
pub(crate) fn figures(plan: &Plan, samples: &Samples) -> Vec<Figure> {
    plan.rows().into_iter().filter_map(|row| Figure::of(row, samples)).collect()
}

impl Figure {
    fn of(row: Row, samples: &Samples) -> Option<Self> {
        let value = samples.median(row.value)?;
        let against = match row.against {
            Some((what, other)) => {
                Some(Against { what, value: samples.median(other)?, ratio: samples.ratio(row.value, other)? })
            }
            None => None,
        };
        let decisive = against.as_ref().map_or(value, |against| against.ratio);
        let met = row.target.map(|target| target.met_by(decisive));
        Some(Self { case: row.case, what: row.what, unit: row.unit, value, against, target: row.target, met })
    }

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
        let met = self.met.map_or("", |met| if met { "met" } else { "MISSED" }).to_owned();
        let case = format!("({})", format!("{:?}", self.case).to_lowercase());
        vec![case, self.what.clone(), show(self.value), against, ratio, target, met]
    }
}

/// Writes the table for people.
pub(crate) fn render(figures: &[Figure]) -> String {
    table(&["", "", "Redial", "against", "ratio", "target", ""], figures.iter().map(Figure::cells))
}

/// Writes the processor seconds by the part that used them; `None` if they were not measured.
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

/// Writes a table with a head and no lines.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

/// Writes a value with its unit.
fn number(value: f64, unit: &str) -> String {
    let digits = match unit {
        "ms" if value < 100.0 => 2,
        "s" => 3,
        _ => 0,
    };
    let unit = if unit == "/s" { "" } else { unit };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}
