//! Recorded runs, committed beside this crate: each figure with the baseline that the machine reached in the same run.

use std::{fs, process::Command};

use anyhow::Context as _;
use chrono::{NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    plan::Plan,
    report::{Figure, number, table},
};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/history.json");

/// One recorded run.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    date: NaiveDate,
    /// As `git describe` names it; `-dirty` says that the code was not committed as it was measured.
    commit: String,
    machine: String,
    postgres: String,
    rounds: u32,
    calls: u32,
    figures: Vec<Figure>,
}

/// Appends a run.
pub(crate) fn record(plan: &Plan, postgres: &str, figures: Vec<Figure>) -> anyhow::Result<()> {
    let mut runs = read()?;
    runs.push(Run {
        date: Utc::now().date_naive(),
        commit: commit().unwrap_or_else(|| "unknown".to_owned()),
        machine: machine(),
        postgres: postgres.to_owned(),
        rounds: plan.rounds,
        calls: plan.calls,
        figures,
    });
    fs::write(FILE, serde_json::to_string_pretty(&runs)? + "\n").context(FILE)
}

/// The change since the last recorded run of the same size; `None` if there is none.
pub(crate) fn compare(plan: &Plan, figures: &[&Figure]) -> anyhow::Result<Option<String>> {
    Ok(read()?.iter().rfind(|run| run.calls == plan.calls).map(|run| run.compared_with(figures)))
}

fn read() -> anyhow::Result<Vec<Run>> {
    serde_json::from_str(&fs::read_to_string(FILE).context(FILE)?).context(FILE)
}

fn commit() -> Option<String> {
    let describe = ["describe", "--always", "--dirty"];
    let output = Command::new("git").args(describe).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    format!("{cores} cores, {}", model.map_or("unknown processor", |(_, name)| name.trim()))
}

impl Run {
    fn compared_with(&self, figures: &[&Figure]) -> String {
        // Ratios to different baselines are not comparable.
        let against = |figure: &Figure| figure.against.as_ref().map(|against| against.what.clone());
        let same =
            |then: &Figure, now: &Figure| (then.case, &then.what, against(then)) == (now.case, &now.what, against(now));
        let then = |now: &Figure| self.figures.iter().find(|then| same(then, now));
        let pairs = figures.iter().filter_map(|now| Some((then(now)?, *now)));
        let rows = pairs.map(|(then, now)| {
            let change = format!("{:+.0} %", (now.decisive() / then.decisive() - 1.0) * 100.0);
            vec![format!("({})", now.case), now.what.clone(), shown(then), shown(now), change]
        });
        let head = format!("recorded {} ({})", self.date, self.commit);
        table(&["", "", &head, "this run", "change"], rows)
    }
}

/// Ratios compare runs on a machine whose speed changes; where there is none, the value does.
fn shown(figure: &Figure) -> String {
    match &figure.against {
        Some(against) => format!("{:.2} of {}", against.ratio, against.what),
        None => number(figure.value, &figure.unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_runs_can_be_read_and_name_their_baselines() {
        for run in read().unwrap() {
            assert!(!run.figures.is_empty(), "{run:?}");
            for figure in run.figures.iter().filter(|figure| figure.what.starts_with("calls/s, 1 dispatcher")) {
                assert!(figure.against.as_ref().unwrap().what.contains("baseline"), "{run:?}");
            }
        }
    }

    #[test]
    fn a_run_is_compared_by_ratios_where_there_are_any() {
        let figure = |what: &str, value: f64, ratio: Option<f64>| -> Figure {
            let against = ratio.map(|ratio| serde_json::json!({"what": "baseline", "value": 2.0, "ratio": ratio}));
            let figure =
                serde_json::json!({"case": "a", "what": what, "unit": "/s", "value": value, "against": against});
            serde_json::from_value(figure).unwrap()
        };
        let run = Run {
            date: NaiveDate::default(),
            commit: "0123abc".to_owned(),
            machine: String::new(),
            postgres: String::new(),
            rounds: 3,
            calls: 100,
            figures: vec![figure("calls/s", 9_000.0, Some(0.8)), figure("tasks/s", 400.0, None)],
        };
        let [calls, tasks, new] =
            [figure("calls/s", 4_000.0, Some(0.6)), figure("tasks/s", 500.0, None), figure("bytes", 1.0, None)];
        let mut other = calls.clone();
        other.against.as_mut().unwrap().what = "another baseline".to_owned();
        insta::assert_snapshot!(run.compared_with(&[&calls, &tasks, &new, &other]));
    }
}
