//! How each task ended, for people; docs/MODELS.md shows one.

use std::{collections::BTreeMap, fmt};

use redial_proto::TaskDecision;

use super::{fixture::Way, record::Record};

/// The columns before the last one, with their widths in characters. Tasks of a way stand below its name.
const COLUMNS: [(&str, usize); 5] = [("task", 36), ("ended", 28), ("turns", 5), ("corrections", 11), ("seconds", 7)];
/// Longest name of a tool; a model may invent a long one.
const NAME: usize = 20;

#[derive(Default)]
pub(crate) struct Table(Vec<Line>);

struct Line {
    way: &'static str,
    task: String,
    state: String,
    code: String,
    turns: u32,
    corrections: u32,
    seconds: f64,
    /// Tools with how their calls were answered, in order; equal ones after one another once, with their number.
    calls: Vec<(String, u32)>,
}

impl Table {
    pub(crate) fn add(&mut self, way: Way, input: &str, record: &Record) {
        let task = &record.task;
        let taken = task.finished_at.zip(task.started_at).map_or(0, |(end, start)| (end - start).num_milliseconds());
        self.0.push(Line {
            way: way.name(),
            task: input.to_owned(),
            state: task.state.to_string(),
            code: task.code.map(|code| code.to_string()).unwrap_or_default(),
            turns: task.turns,
            corrections: task.corrections,
            #[expect(clippy::cast_precision_loss, reason = "minutes at most")]
            seconds: taken as f64 / 1000.0,
            calls: calls(record),
        });
    }
}

fn calls(record: &Record) -> Vec<(String, u32)> {
    let mut calls: Vec<(String, u32)> = Vec::new();
    for decision in record.steps.iter().flat_map(|step| &step.decisions) {
        let one = match decision {
            TaskDecision::Answered { tool, class, .. } => {
                format!("{} {}", shortened(tool, NAME), class.map_or("ok", redial_proto::ErrorClass::as_str))
            }
            TaskDecision::Nudged { .. } => "(asked again)".to_owned(),
            _ => continue,
        };
        match calls.last_mut() {
            Some((last, times)) if *last == one => *times += 1,
            _ => calls.push((one, 1)),
        }
    }
    calls
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = COLUMNS.map(|(name, _)| name.to_owned());
        row(f, &head, "tool calls and their results")?;
        let mut way = "";
        for line in &self.0 {
            if way != line.way {
                way = line.way;
                writeln!(f, "{way}")?;
            }
            let times =
                |(call, times): &(String, u32)| if *times == 1 { call.clone() } else { format!("{times} x {call}") };
            let answered: Vec<String> = line.calls.iter().map(times).collect();
            let cells = [
                format!("  {}", line.task),
                format!("{} {}", line.state, line.code),
                line.turns.to_string(),
                line.corrections.to_string(),
                format!("{:.1}", line.seconds),
            ];
            row(f, &cells, &answered.join(", "))?;
        }
        self.summary(f)
    }
}

fn row(f: &mut fmt::Formatter<'_>, cells: &[String; 5], last: &str) -> fmt::Result {
    let mut text = String::new();
    for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
        let cell = shortened(cell, width);
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', (width + 2).saturating_sub(wide(&cell))));
    }
    writeln!(f, "{}", (text + last).trim_end())
}

fn wide(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

fn shortened(text: &str, width: usize) -> String {
    if wide(text) <= width { text.to_owned() } else { text.chars().take(width - 1).chain(['…']).collect() }
}

impl Table {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for way in Way::ALL {
            let lines: Vec<&Line> = self.0.iter().filter(|line| line.way == way.name()).collect();
            let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
            for line in &lines {
                *codes.entry(&line.code).or_default() += 1;
            }
            let codes: Vec<String> = codes.iter().map(|(code, times)| format!("{times} {code}")).collect();
            let calls = lines.iter().flat_map(|line| &line.calls).filter(|(call, _)| !call.starts_with('('));
            let (mut all, mut good) = (0, 0);
            calls
                .for_each(|(call, times)| (all, good) = (all + times, good + times * u32::from(call.ends_with(" ok"))));
            let corrections: u32 = lines.iter().map(|line| line.corrections).sum();
            let seconds: f64 = lines.iter().map(|line| line.seconds).sum();
            write!(f, "\n{}: {} tasks: {}; ", way.name(), lines.len(), codes.join(", "))?;
            write!(f, "{all} tool calls, {good} of them ok, {corrections} corrections, {seconds:.0} s")?;
        }
        Ok(())
    }
}
