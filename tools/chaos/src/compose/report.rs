//! The report: a table for people, JSON for machines.

use std::collections::BTreeMap;

use redial_proto::{CallState, TaskState};
use redial_testkit::{Invariant, ToolEvent, Violation};
use serde::Serialize;

use super::{ended::Ended, faults::Injected, plan};
use crate::{
    cli::ComposeArgs,
    report::{InvariantRow, counts, lines, row, seconds, some, table},
};

/// See the module.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// What runs the same again: load and schedule.
    command: String,
    seconds: f64,
    faults: Vec<FaultRow>,
    numbers: BTreeMap<&'static str, String>,
    invariants: Vec<InvariantRow>,
    skipped: Vec<String>,
}

/// Faults of one kind.
#[derive(Debug, Default, Serialize)]
struct FaultRow {
    kind: String,
    injected: usize,
    worst_recovery_ms: u64,
    not_recovered: usize,
}

pub(super) fn make(args: &ComposeArgs, ended: &Ended, violations: &[Violation]) -> Report {
    let mut skipped: Vec<String> = Vec::new();
    for one in &ended.injected {
        skipped.extend(one.skipped.as_ref().map(|why| format!("{}: {why}", one.step)));
    }
    Report {
        command: format!(
            "./dev compose --seed {} --calls {} --tasks {} --faults {}",
            ended.seed, args.calls, args.tasks, args.faults
        ),
        seconds: ended.took.as_secs_f64(),
        faults: faults(&ended.injected),
        numbers: numbers(ended),
        invariants: invariants(ended, violations),
        skipped,
    }
}

fn faults(injected: &[Injected]) -> Vec<FaultRow> {
    let mut rows: BTreeMap<String, FaultRow> = BTreeMap::new();
    for one in injected.iter().filter(|one| one.skipped.is_none()) {
        let kind = one.step.to_string();
        let row = rows.entry(kind.clone()).or_insert_with(|| FaultRow { kind, ..FaultRow::default() });
        row.injected += 1;
        match one.recovery {
            Some(time) => {
                row.worst_recovery_ms = row.worst_recovery_ms.max(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            }
            None => row.not_recovered += 1,
        }
    }
    rows.into_values().collect()
}

fn numbers(ended: &Ended) -> BTreeMap<&'static str, String> {
    let (evidence, claims) = (&ended.evidence, &ended.claims);
    let calls = CallState::ALL.map(|state| (state.as_str(), evidence.count(state)));
    let tasks_in = |state: TaskState| evidence.tasks.iter().filter(|task| task.state == state).count();
    let tasks = TaskState::ALL.map(|state| (state.as_str(), tasks_in(state)));
    let acknowledged = claims.acknowledged.len();
    let effects = claims.tool_events.iter().filter(|entry| entry.event == ToolEvent::Effect).count();
    BTreeMap::from([
        (
            "calls acknowledged",
            format!(
                "{acknowledged}, {} of them over HTTP ({} with those of tasks)",
                ended.over_http,
                evidence.calls.len()
            ),
        ),
        ("calls ended", counts(&some(calls.into()))),
        ("tasks acknowledged", format!("{}; ended: {}", claims.tasks.len(), counts(&some(tasks.into())))),
        (
            "attempts",
            format!("{}, of which {} were lost with their worker", evidence.attempts().count(), evidence.lost()),
        ),
        ("effects of programs", effects.to_string()),
        ("asked again, answer unknown", ended.asked_again.to_string()),
        ("stale results fenced", evidence.late_reports.to_string()),
    ])
}

fn invariants(ended: &Ended, violations: &[Violation]) -> Vec<InvariantRow> {
    let of_checker = Invariant::ALL.map(|invariant| {
        let found = violations.iter().filter(|violation| violation.invariant == invariant);
        row(format!("{invariant:?}"), found.map(ToString::to_string).collect())
    });
    let calls = ended.evidence.calls.values().filter(|call| !plan::may_end(call));
    let calls = calls.map(|call| format!("call {} of {} ended {} ({:?})", call.id, call.tool, call.state, call.class));
    let tasks = ended.evidence.tasks.iter().filter(|task| task.state != TaskState::Succeeded);
    let tasks = tasks.map(|task| format!("task {} ended {}", task.id, task.state.as_str()));
    let down = ended.injected.iter().filter(|one| one.skipped.is_none() && one.recovery.is_none());
    let down = down.map(|one| one.step.to_string()).chain(ended.unhealthy.iter().cloned());
    let own = [
        row("EndsAsOrdered".to_owned(), calls.chain(tasks).collect()),
        row("EverythingRecovers".to_owned(), down.collect()),
        row("SubmissionsAreUnderstood".to_owned(), ended.wrong.clone()),
        row("NoProcessCrashes".to_owned(), ended.crashes.clone()),
    ];
    of_checker.into_iter().chain(own).collect()
}

impl Report {
    /// Nothing was broken.
    pub(crate) fn passes(&self) -> bool {
        self.invariants.iter().all(|row| row.violations == 0)
    }

    /// The whole report.
    pub(crate) fn table(&self) -> String {
        let faults = self.faults.iter().map(|row| {
            let worst = match row.not_recovered {
                0 => seconds(row.worst_recovery_ms),
                n => format!("{n} did not recover"),
            };
            vec![row.kind.clone(), row.injected.to_string(), worst]
        });
        let numbers = self.numbers.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]);
        let invariants = self.invariants.iter().map(|row| vec![row.name.clone(), row.word()]);
        let examples = lines("  ", self.invariants.iter().flat_map(|row| &row.examples));
        format!(
            "{}\n{} faults in {:.0} s\n\n{}\n\n{}\n\n{}\n{examples}{}\n{}",
            self.command,
            self.faults.iter().map(|row| row.injected).sum::<usize>(),
            self.seconds,
            table(&["fault", "injected", "worst recovery"], faults),
            table(&["", ""], numbers),
            table(&["invariant", ""], invariants),
            lines("not done: ", self.skipped.iter()),
            if self.passes() { "every invariant holds" } else { "INVARIANTS ARE BROKEN" },
        )
    }
}
