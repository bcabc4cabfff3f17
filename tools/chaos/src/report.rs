//! The report of a run: a table for people, JSON for machines.

mod machine;
mod ms;
mod table;
mod targets;

use std::collections::BTreeMap;

use redial_proto::{CallState, TaskState};
use redial_testkit::{Heard, Invariant, ToolEvent};
use serde::Serialize;

use crate::{
    cli::RunArgs,
    ended::{Ended, LEASE},
    faults::{Outcome, Recovery},
    schedule::Step,
};

use machine::Machine;
use ms::ms;
pub(crate) use table::{counts, lines, seconds, table};
pub(crate) use targets::TargetRow;

/// See the module.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// What runs the same again: load and schedule.
    pub(crate) command: String,
    pub(crate) seed: u64,
    pub(crate) nats_server: String,
    pub(crate) seconds: f64,
    pub(crate) lease_ms: u64,
    pub(crate) faults_planned: usize,
    pub(crate) faults_injected: usize,
    pub(crate) faults: Vec<FaultRow>,
    pub(crate) numbers: Numbers,
    pub(crate) invariants: Vec<InvariantRow>,
    pub(crate) targets: Vec<TargetRow>,
    pub(crate) machine: Machine,
    /// Not possible on this machine.
    pub(crate) skipped: Vec<String>,
}

/// Faults of one kind.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FaultRow {
    pub(crate) kind: String,
    pub(crate) injected: usize,
    pub(crate) worst_recovery_ms: Option<u64>,
    /// So many did not recover in time.
    pub(crate) not_recovered: usize,
}

/// What went through.
#[derive(Debug, Serialize)]
pub(crate) struct Numbers {
    pub(crate) calls_acknowledged: usize,
    pub(crate) calls_on_record: usize,
    pub(crate) tasks_acknowledged: usize,
    pub(crate) tasks_on_record: usize,
    pub(crate) attempts: usize,
    pub(crate) attempts_lost_with_their_worker: usize,
    pub(crate) effects: usize,
    pub(crate) cancels_acknowledged: usize,
    pub(crate) answers_unknown_and_asked_again: u64,
    pub(crate) messages_repeated: usize,
    pub(crate) stale_results_fenced: u64,
    /// Acknowledged and not on record, or not ended.
    pub(crate) lost: usize,
    /// Effects or outcomes too many.
    pub(crate) duplicated: usize,
    pub(crate) calls_ended: BTreeMap<&'static str, usize>,
    pub(crate) tasks_ended: BTreeMap<&'static str, usize>,
    pub(crate) workers_started: usize,
    pub(crate) workers_with_a_wrong_clock: usize,
    /// What users and hostile clients received, each searched for something of another tenant.
    pub(crate) messages_searched: u64,
    /// So many of them had something of the tenant that they were for.
    pub(crate) messages_with_their_own: u64,
}

/// How often a rule was broken.
#[derive(Debug, Serialize)]
pub(crate) struct InvariantRow {
    pub(crate) name: String,
    pub(crate) violations: usize,
    pub(crate) examples: Vec<String>,
}

impl InvariantRow {
    /// For people.
    pub(crate) fn word(&self) -> String {
        if self.violations == 0 { "holds".to_owned() } else { format!("BROKEN {} times", self.violations) }
    }
}

/// Examples of each broken rule.
const EXAMPLES: usize = 5;

pub(crate) fn make(ended: &Ended<'_>) -> Report {
    let kinds = ended.run.steps.iter().filter(|(_, outcome)| outcome.skipped.is_none());
    Report {
        command: command(ended.run.seed, ended.run.args),
        seed: ended.run.seed,
        nats_server: ended.run.nats.clone(),
        seconds: ended.run.took.as_secs_f64(),
        lease_ms: ms(LEASE),
        faults_planned: ended.run.planned,
        faults_injected: kinds.map(|(step, _)| 1 + usize::from(step.also.is_some())).sum(),
        faults: faults(ended.run.steps),
        numbers: numbers(ended),
        invariants: invariants(ended),
        targets: targets::rows(ended),
        machine: Machine::of(ended.run.machine),
        skipped: skipped(ended),
    }
}

impl Report {
    /// Nothing was broken; with `strict`, no target was missed either.
    pub(crate) fn passes(&self, strict: bool) -> bool {
        let kept = self.invariants.iter().all(|row| row.violations == 0);
        kept && (!strict || self.targets.iter().all(|row| row.met != Some(false)))
    }

    /// The machine stood still for so short a time that the run says something.
    pub(crate) fn proves(&self) -> bool {
        !self.machine.stood_still_too_long
    }
}

fn command(seed: u64, args: &RunArgs) -> String {
    let RunArgs { calls, tasks, faults, only, minutes, python, python_workers, cluster, standby, .. } = args;
    let option = |given: bool, option: &'static str| if given { option } else { "" };
    let redundant = [option(*cluster, " --cluster"), option(*standby, " --standby")].concat();
    let only = if only.is_empty() { String::new() } else { format!(" --only {only:?}") };
    let python = if python.is_some() && *python_workers != 1 {
        format!(" --python-workers {python_workers}")
    } else {
        String::new()
    };
    format!(
        "./dev chaos --seed {seed} --calls {calls} --tasks {tasks} --faults {faults} --minutes {minutes}{redundant}{only}{python}"
    )
}

fn faults(steps: &[(Step, Outcome)]) -> Vec<FaultRow> {
    let mut rows: BTreeMap<String, FaultRow> = BTreeMap::new();
    for (step, outcome) in steps.iter().filter(|(_, outcome)| outcome.skipped.is_none()) {
        let kind = step.fault.kind();
        let row = rows.entry(kind.clone()).or_insert_with(|| FaultRow { kind, ..FaultRow::default() });
        row.injected += 1;
        match outcome.recovery {
            Recovery::NotMeasured => {}
            Recovery::After(time) => row.worst_recovery_ms = row.worst_recovery_ms.max(Some(ms(time))),
            Recovery::Never => row.not_recovered += 1,
        }
        if let Some(victim) = step.also {
            let kind = crate::schedule::Fault::Kill(victim).kind();
            rows.entry(kind.clone()).or_insert_with(|| FaultRow { kind, ..FaultRow::default() }).injected += 1;
        }
    }
    rows.into_values().collect()
}

fn numbers(ended: &Ended<'_>) -> Numbers {
    let (evidence, claims, fixture) = (ended.evidence, ended.claims, &ended.run.injector.fixture);
    let broken =
        |rules: &[Invariant]| ended.violations.iter().filter(|violation| rules.contains(&violation.invariant)).count();
    let calls = CallState::ALL.map(|state| (state.as_str(), evidence.count(state)));
    let tasks_in = |state: TaskState| evidence.tasks.iter().filter(|task| task.state == state).count();
    let tasks = TaskState::ALL.map(|state| (state.as_str(), tasks_in(state)));
    Numbers {
        calls_acknowledged: claims.acknowledged.len(),
        calls_on_record: evidence.calls.len(),
        tasks_acknowledged: claims.tasks.len(),
        tasks_on_record: evidence.tasks.len(),
        attempts: evidence.attempts().count(),
        attempts_lost_with_their_worker: evidence.lost(),
        effects: claims.tool_events.iter().filter(|entry| entry.event == ToolEvent::Effect).count(),
        cancels_acknowledged: claims.cancelled.len(),
        answers_unknown_and_asked_again: ended.run.clients.log().unknown,
        messages_repeated: ended.run.injector.repeated,
        stale_results_fenced: evidence.late_reports,
        lost: broken(&[Invariant::AcknowledgedExists, Invariant::EveryCallEnds, Invariant::EveryTaskEnds]),
        duplicated: broken(&[
            Invariant::UnsafeOnce,
            Invariant::EffectsWithinAttempts,
            Invariant::OneOutcome,
            Invariant::OneAnswerPerCall,
        ]),
        calls_ended: some(calls.into()),
        tasks_ended: some(tasks.into()),
        workers_started: fixture.started.len(),
        workers_with_a_wrong_clock: fixture.wrong_clocks,
        messages_searched: claims.heard.iter().map(|heard| heard.messages).sum(),
        messages_with_their_own: claims.heard.iter().map(own).sum(),
    }
}

/// Without what did not occur.
pub(crate) fn some(counts: Vec<(&'static str, usize)>) -> BTreeMap<&'static str, usize> {
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// How many messages carried the canary of whom they were for.
fn own(heard: &Heard) -> u64 {
    heard.tenant.as_ref().and_then(|tenant| heard.canaries.get(tenant)).map_or(0, |(messages, _)| *messages)
}

fn invariants(ended: &Ended<'_>) -> Vec<InvariantRow> {
    let of_checker = Invariant::ALL.map(|invariant| {
        let found = ended.violations.iter().filter(|violation| violation.invariant == invariant);
        row(format!("{invariant:?}"), found.map(ToString::to_string).collect())
    });
    let surprises = ended.run.clients.log().surprises.clone();
    let unexpected = ended.unexpected.iter().map(|(_, found)| found.clone()).collect();
    let down = ended.run.steps.iter().filter(|(_, outcome)| outcome.accuses(ended.run.machine));
    let own = [
        row("EndsAsOrdered".to_owned(), unexpected),
        row("EverythingRecovers".to_owned(), down.map(|(step, _)| step.to_string()).collect()),
        row("SubmissionsAreUnderstood".to_owned(), surprises),
        row("MisuseIsContained".to_owned(), ended.run.injector.wrong.clone()),
        row("NoSecretLeaks".to_owned(), ended.leaks.to_vec()),
        row("NoProcessCrashes".to_owned(), ended.run.injector.fixture.crashes.clone()),
    ];
    of_checker.into_iter().chain(own).collect()
}

pub(crate) fn row(name: String, mut found: Vec<String>) -> InvariantRow {
    let violations = found.len();
    found.truncate(EXAMPLES);
    InvariantRow { name, violations, examples: found }
}

fn skipped(ended: &Ended<'_>) -> Vec<String> {
    let mut skipped: Vec<String> = ended
        .run
        .steps
        .iter()
        .filter_map(|(step, outcome)| outcome.skipped.as_ref().map(|why| format!("{}: {why}", step.fault.kind())))
        .collect();
    skipped.dedup();
    if ended.run.injector.fixture.wrong_clocks == 0 {
        skipped.push("a worker with a wrong clock: needs a C compiler and LD_PRELOAD".to_owned());
    }
    if ended.run.steps.len() < ended.run.planned {
        skipped.push(format!("{} faults: no time was left (--minutes)", ended.run.planned - ended.run.steps.len()));
    }
    skipped
}
