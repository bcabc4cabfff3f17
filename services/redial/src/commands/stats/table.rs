//! The figures as a table that fits a terminal of 80 columns.

use comfy_table::{CellAlignment, Table, presets::NOTHING};
use redial_store::stats::{By, Group, GroupSums, Histogram, Stats, UsageSums};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    output,
    timeline::totals::{dollars, thousands},
};

const WIDTH: usize = 80;
/// A name is not cut to less.
const NAME: usize = 12;

/// A column of numbers; without a value in any row it is left out.
struct Column {
    head: &'static str,
    cell: fn(&GroupSums) -> Option<String>,
}

const CALLS: &[Column] = &[
    Column { head: "calls", cell: |sums| Some(thousands(sums.calls.calls)) },
    Column { head: "failed", cell: |sums| some(sums.ended_as("failed").saturating_add(sums.ended_as("unknown"))) },
    Column { head: "refused", cell: |sums| some(sums.ended_as("refused")) },
    Column { head: "retries", cell: |sums| some(sums.calls.retries) },
    Column { head: "corrected", cell: |sums| some(sums.calls.corrections) },
    Column { head: "p50", cell: |sums| quantile(&sums.calls.durations, 0.5) },
    Column { head: "p95", cell: |sums| quantile(&sums.calls.durations, 0.95) },
    Column { head: "cost", cell: |sums| cost(&sums.calls.usage) },
];
const MODELS: &[Column] = &[
    Column { head: "turns", cell: |sums| Some(thousands(sums.calls.calls)) },
    Column { head: "failed", cell: |sums| some(sums.ended_as("failed").saturating_add(sums.ended_as("unknown"))) },
    Column { head: "retries", cell: |sums| some(sums.calls.retries) },
    Column { head: "p50", cell: |sums| quantile(&sums.calls.durations, 0.5) },
    Column { head: "p95", cell: |sums| quantile(&sums.calls.durations, 0.95) },
    Column { head: "read", cell: |sums| tokens(&sums.calls.usage, sums.calls.usage.input_tokens) },
    Column { head: "written", cell: |sums| tokens(&sums.calls.usage, sums.calls.usage.output_tokens) },
    Column { head: "cost", cell: |sums| cost(&sums.calls.usage) },
];
const ATTEMPTS: &[Column] = &[
    Column { head: "attempts", cell: |sums| Some(thousands(sums.attempts.attempts)) },
    Column { head: "failed", cell: |sums| some(sums.attempts.failed) },
    Column { head: "p50", cell: |sums| quantile(&sums.attempts.durations, 0.5) },
    Column { head: "p95", cell: |sums| quantile(&sums.attempts.durations, 0.95) },
];

/// Renders one line for each group, and their sum if there are several.
pub(super) fn render(by: By, stats: &Stats) -> String {
    let (head, columns) = match by {
        By::Tool => ("tool", CALLS),
        By::Class => ("class", CALLS),
        By::Model => ("model", MODELS),
        By::Worker => ("worker", ATTEMPTS),
        By::Hour => ("hour (UTC)", CALLS),
    };
    let mut all = GroupSums::default();
    for (_, sums) in &stats.groups {
        all.add(sums);
    }
    let mut lines: Vec<(String, &GroupSums)> = stats.groups.iter().map(|(group, sums)| (name(group), sums)).collect();
    if lines.len() > 1 {
        lines.push(("all".to_owned(), &all));
    }
    // How calls ended is what they are grouped by.
    let is_told = |column: &&Column| by == By::Class && ["failed", "refused"].contains(&column.head);
    let used = columns.iter().filter(|column| (column.cell)(&all).is_some() && !is_told(column));
    let used: Vec<&Column> = used.collect();
    let cells = |sums: &GroupSums| -> Vec<String> {
        used.iter().map(|column| (column.cell)(sums).unwrap_or_else(|| "-".to_owned())).collect()
    };
    let rows: Vec<(String, Vec<String>)> = lines.into_iter().map(|(name, sums)| (name, cells(sums))).collect();
    let (gap, most) = widths(&used, &rows);
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([head].into_iter().chain(used.iter().map(|column| column.head)));
    for (name, cells) in &rows {
        table.add_row([output::one_line(name, most)].into_iter().chain(cells.iter().cloned()));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding(if index == 0 { (0, 0) } else { (gap, 0) });
        column.set_cell_alignment(if index == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.trim_fmt()
}

/// Returns the spaces between columns, and the room that is left for names.
fn widths(columns: &[&Column], rows: &[(String, Vec<String>)]) -> (u16, usize) {
    let of = |index: usize, column: &Column| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(index)).map(|cell| cell.width());
        cells.max().unwrap_or(0).max(column.head.len())
    };
    let numbers: usize = columns.iter().enumerate().map(|(index, column)| of(index, column)).sum();
    let names = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let gap = if numbers + 2 * columns.len() + names <= WIDTH { 2 } else { 1 };
    (gap, WIDTH.saturating_sub(numbers + usize::from(gap) * columns.len()).max(NAME))
}

fn name(group: &Group) -> String {
    match group {
        Group::Name(name) => name.clone(),
        Group::Hour(hour) => hour.format("%m-%d %H:%M").to_string(),
        Group::Both(first, second) => format!("{} {}", self::name(first), self::name(second)),
    }
}

fn some(number: u64) -> Option<String> {
    (number > 0).then(|| thousands(number))
}

fn quantile(durations: &Histogram, share: f64) -> Option<String> {
    durations.quantile(share).map(|ms| format!("≈{}", output::about(i64::try_from(ms).unwrap_or(i64::MAX))))
}

fn tokens(usage: &UsageSums, sum: u64) -> Option<String> {
    known(usage.answers, usage.tokens_unknown, sum, thousands(sum))
}

/// Rounds a cost to what matters of it; below a cent not at all. A price of 0 is that of models that are free.
fn cost(usage: &UsageSums) -> Option<String> {
    let micros = usage.cost_micros;
    let unit = match micros {
        ..10_000 => 1,
        10_000..100_000_000 => 100,
        _ => 10_000,
    };
    let shown = dollars(micros.saturating_add(unit / 2) / unit * unit);
    known(usage.answers, usage.cost_unknown, micros, shown)
}

/// Writes a sum of which parts may be unknown.
fn known(answers: u64, unknown: u64, sum: u64, text: String) -> Option<String> {
    match (answers, unknown) {
        (0, _) => None,
        (_, 0) => Some(text),
        _ if sum == 0 => Some("?".to_owned()),
        _ => Some(format!("≥{text}")),
    }
}

#[cfg(test)]
mod tests {
    use redial_store::stats::{AttemptSums, CallSums};

    use super::*;

    fn durations(values: &[i64]) -> Histogram {
        let mut histogram = Histogram::default();
        for ms in values {
            histogram.add(*ms);
        }
        histogram
    }

    fn group(name: &str, states: &[(&str, u64)], calls: CallSums) -> (Group, GroupSums) {
        let states = states.iter().map(|(state, calls)| ((*state).to_owned(), *calls)).collect();
        (Group::Name(name.to_owned()), GroupSums { states, calls, ..GroupSums::default() })
    }

    fn stats(groups: Vec<(Group, GroupSums)>) -> Stats {
        let [since, until] = ["2026-11-20T08:00:00Z", "2026-11-21T08:30:00Z"].map(|time| time.parse().unwrap());
        Stats { since, until, is_complete: true, groups }
    }

    fn samples() -> Vec<(Group, GroupSums)> {
        let usage = UsageSums {
            answers: 9_000,
            input_tokens: 12_345_678,
            output_tokens: 90_123,
            cost_micros: 41_500_000,
            tokens_unknown: 3,
            cost_unknown: 3,
        };
        let model =
            CallSums { calls: 9_100, retries: 70, durations: durations(&[2_400, 9_000]), usage, ..CallSums::default() };
        let tool = CallSums {
            calls: 1_234_567,
            retries: 12_345,
            corrections: 210,
            durations: durations(&[3, 80, 90_000]),
            ..CallSums::default()
        };
        let refused = CallSums { calls: 4, ..CallSums::default() };
        vec![
            group(
                "get_weather_forecast_of_a_city",
                &[("succeeded", 1_230_000), ("failed", 4_500), ("unknown", 67)],
                tool,
            ),
            group("model-small", &[("succeeded", 9_000), ("failed", 100)], model),
            group("(unknown tool)", &[("refused", 4)], refused),
        ]
    }

    #[test]
    fn tables_fit_eighty_columns_and_what_is_unknown_is_not_zero() {
        let mut hours = samples();
        for (hour, (group, _)) in hours.iter_mut().enumerate() {
            *group = Group::Hour(format!("2026-11-20T{hour:02}:00:00Z").parse().unwrap());
        }
        let attempts = AttemptSums { attempts: 12, failed: 1, durations: durations(&[5, 5, 70]) };
        let worker = GroupSums { attempts, ..GroupSums::default() };
        let workers = vec![(Group::Name("host-0123456789ab".to_owned()), worker)];
        let unknown = UsageSums { answers: 2, tokens_unknown: 2, cost_unknown: 2, ..UsageSums::default() };
        let mut groups = samples().split_off(1);
        groups.truncate(1);
        groups.push(group("silent", &[("succeeded", 2)], CallSums { calls: 2, usage: unknown, ..CallSums::default() }));
        let free = UsageSums { answers: 1, input_tokens: 7, output_tokens: 2, ..UsageSums::default() };
        groups.push(group("free", &[("succeeded", 1)], CallSums { calls: 1, usage: free, ..CallSums::default() }));
        let all = [(By::Tool, samples()), (By::Hour, hours), (By::Model, groups), (By::Worker, workers)];
        let text = all.map(|(by, groups)| render(by, &stats(groups))).join("\n\n");
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        insta::assert_snapshot!(text);
    }
}
