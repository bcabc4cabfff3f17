//! The report of a run.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use comfy_table::{Table, presets::NOTHING};
use redial_proto::{CallId, CallState, TaskState};
use redial_testkit::{AttemptFacts, Claims, Evidence, Heard, Invariant, ToolEvent, Violation};

use crate::{
    cli::RunArgs,
    client::Clients,
    faults::{Injector, Outcome, Recovery, Target},
    fixture::LEASE,
    schedule::Step,
    watchdog::Standstills,
};

/// A run that is over, and what was found.
pub(crate) struct Ended<'a> {
    pub(crate) seed: u64,
    pub(crate) args: &'a RunArgs,
    pub(crate) nats: String,
    pub(crate) took: Duration,
    pub(crate) planned: usize,
    pub(crate) steps: &'a [(Step, Outcome)],
    pub(crate) injector: &'a Injector,
    pub(crate) clients: &'a Clients,
    pub(crate) machine: &'a Standstills,
    pub(crate) evidence: Evidence,
    pub(crate) claims: Claims,
    pub(crate) violations: Vec<Violation>,
    /// Calls that ended otherwise than their orders allow, and how.
    pub(crate) unexpected: Vec<(CallId, String)>,
}

/// A rule, and how it was broken.
pub(crate) struct Rule {
    name: String,
    found: Vec<String>,
}

/// Examples of each broken rule.
const EXAMPLES: usize = 5;

impl Rule {
    pub(crate) fn new(name: &str, found: Vec<String>) -> Self {
        Self { name: name.to_owned(), found }
    }

    pub(crate) fn of_checker(violations: &[Violation]) -> Vec<Self> {
        let found =
            |rule| violations.iter().filter(move |one| one.invariant == rule).map(ToString::to_string).collect();
        Invariant::ALL.iter().map(|&rule| Self::new(&format!("{rule:?}"), found(rule))).collect()
    }

    pub(crate) fn holds(&self) -> bool {
        self.found.is_empty()
    }
}

/// Writes the rules, examples of those that are broken, and the verdict.
pub(crate) fn verdict(rules: &[Rule]) -> String {
    let word = |rule: &Rule| match rule.found.len() {
        0 => "holds".to_owned(),
        n => format!("BROKEN {n} times"),
    };
    let mut text = table(&["invariant", ""], rules.iter().map(|rule| vec![rule.name.clone(), word(rule)]));
    for example in rules.iter().flat_map(|rule| rule.found.iter().take(EXAMPLES)) {
        let _infallible = write!(text, "\n  {example}");
    }
    let holds = rules.iter().all(Rule::holds);
    text + if holds { "\n\nevery invariant holds" } else { "\n\nINVARIANTS ARE BROKEN" }
}

/// Writes the report for people; says whether every invariant holds, and with `--strict` every target is met.
pub(crate) fn make(ended: &Ended<'_>) -> (String, bool) {
    let (rules, targets) = (rules(ended), targets(ended));
    let injected = ended.steps.iter().filter(|(_, outcome)| outcome.skipped.is_none()).count();
    let (took, total) = (ended.took.as_secs_f64(), ended.machine.total().as_secs_f64());
    let text = format!(
        "{}\n{injected} faults in {took:.0} s, on nats-server {}, leases of {} s\n\n{}\n\n{}\n\n{}\n\n\
         the machine stood still {} times, {total:.2} s of {took:.0} s\n{}{}",
        command(ended.seed, ended.args),
        ended.nats,
        LEASE.as_secs(),
        faults(ended.steps),
        numbers(ended),
        table(&["target", "limit", "measured", "out of", ""], targets.iter().cloned().map(Vec::from)),
        ended.machine.all.len(),
        skipped(ended),
        verdict(&rules),
    );
    let missed = targets.iter().any(|row| row[4] == MISSED);
    (text, rules.iter().all(Rule::holds) && !(ended.args.strict && missed))
}

fn command(seed: u64, args: &RunArgs) -> String {
    let RunArgs { calls, tasks, faults, only, minutes, cluster, standby, .. } = args;
    let option = |given: bool, option: &'static str| if given { option } else { "" };
    let redundant = [option(*cluster, " --cluster"), option(*standby, " --standby")].concat();
    let only = if only.is_empty() { String::new() } else { format!(" --only {only:?}") };
    format!(
        "./dev chaos --seed {seed} --calls {calls} --tasks {tasks} --faults {faults} --minutes {minutes}{redundant}{only}"
    )
}

fn faults(steps: &[(Step, Outcome)]) -> String {
    let mut kinds: BTreeMap<String, Vec<Recovery>> = BTreeMap::new();
    for (step, outcome) in steps.iter().filter(|(_, outcome)| outcome.skipped.is_none()) {
        kinds.entry(step.fault.kind()).or_default().push(outcome.recovery);
    }
    let row = |(kind, recoveries): (String, Vec<Recovery>)| {
        let worst = recoveries.iter().max().copied().unwrap_or_default();
        vec![
            kind,
            recoveries.len().to_string(),
            if worst == Recovery::NotMeasured { String::new() } else { show(worst) },
        ]
    };
    table(&["fault", "injected", "worst recovery"], kinds.into_iter().map(row))
}

fn numbers(ended: &Ended<'_>) -> String {
    let Ended { evidence, claims, injector, clients, .. } = ended;
    let broken =
        |rules: &[Invariant]| ended.violations.iter().filter(|violation| rules.contains(&violation.invariant)).count();
    let calls = CallState::ALL.map(|state| (state.as_str(), evidence.count(state)));
    let tasks_in = |state: TaskState| evidence.tasks.iter().filter(|task| task.state == state).count();
    let tasks = TaskState::ALL.map(|state| (state.as_str(), tasks_in(state)));
    let effects = claims.tool_events.iter().filter(|entry| entry.event == ToolEvent::Effect).count();
    let (received, own) = (claims.heard.iter().map(|heard| heard.messages).sum::<u64>(), claims.heard.iter().map(own));
    let (attempts, lost) = (evidence.attempts().count(), evidence.lost());
    let injected = ended.steps.iter().filter(|(_, outcome)| outcome.skipped.is_none()).count();
    let unknown = evidence.count(CallState::Unknown);
    let losses = [Invariant::AcknowledgedExists, Invariant::EveryCallEnds, Invariant::EveryTaskEnds];
    let repetitions =
        [Invariant::UnsafeOnce, Invariant::EffectsWithinAttempts, Invariant::OneOutcome, Invariant::OneAnswerPerCall];
    let rows = [
        ("calls acknowledged", format!("{} ({} with those of tasks)", claims.acknowledged.len(), evidence.calls.len())),
        ("ended", counts(&calls)),
        ("tasks acknowledged", format!("{}; ended: {}", claims.tasks.len(), counts(&tasks))),
        ("attempts", format!("{attempts}, of which {lost} were lost with their worker")),
        ("unknown", format!("{unknown}, {} for 1,000 faults", unknown * 1_000 / injected.max(1))),
        ("effects of tools", effects.to_string()),
        ("cancels acknowledged", claims.cancelled.len().to_string()),
        ("asked again, answer unknown", clients.log().unknown.to_string()),
        ("stale results fenced", evidence.late_reports.to_string()),
        ("workers started", injector.fixture.started.len().to_string()),
        ("received and searched", format!("{received}, of which {} said whose they are", own.sum::<u64>())),
        ("lost", broken(&losses).to_string()),
        ("duplicated", broken(&repetitions).to_string()),
    ];
    table(&["", ""], rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]))
}

/// Writes counts without what did not occur.
fn counts(counts: &[(&str, usize)]) -> String {
    let some = counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}"));
    some.collect::<Vec<_>>().join(", ")
}

/// Counts the messages that carried the canary of whom they were for.
fn own(heard: &Heard) -> u64 {
    heard.tenant.as_ref().and_then(|tenant| heard.canaries.get(tenant)).map_or(0, |(messages, _)| *messages)
}

fn rules(ended: &Ended<'_>) -> Vec<Rule> {
    let Ended { injector, clients, steps, .. } = ended;
    let down = steps.iter().filter(|(_, outcome)| outcome.is_down()).map(|(step, _)| step.fault.to_string());
    let mut rules = Rule::of_checker(&ended.violations);
    rules.extend([
        Rule::new("EndsAsOrdered", ended.unexpected.iter().map(|(_, found)| found.clone()).collect()),
        Rule::new("EverythingRecovers", down.collect()),
        Rule::new("SubmissionsAreUnderstood", clients.log().surprises.clone()),
        Rule::new("MisuseIsContained", injector.wrong.clone()),
        Rule::new("NoProcessCrashes", injector.fixture.crashes.clone()),
    ]);
    rules
}

fn skipped(ended: &Ended<'_>) -> String {
    let of = ended.steps.iter().filter_map(|(step, outcome)| Some((step.fault.kind(), outcome.skipped.as_ref()?)));
    let kinds: BTreeMap<String, &String> = of.collect();
    let mut lines: Vec<String> = kinds.into_iter().map(|(kind, why)| format!("not done: {kind}: {why}\n")).collect();
    if ended.steps.len() < ended.planned {
        let left = ended.planned - ended.steps.len();
        lines.push(format!("not done: {left} faults: no time was left (--minutes)\n"));
    }
    lines.concat() + "\n"
}

const MISSED: &str = "MISSED";

/// Lists targets, each with its limit, what was measured, from so many faults or attempts, and whether that meets it.
fn targets(ended: &Ended<'_>) -> Vec<[String; 5]> {
    let all = || ended.steps.iter().flat_map(|(_, outcome)| &outcome.measured);
    let times = Target::ALL.map(|(target, name, limit)| {
        let measured: Vec<Recovery> = all().filter(|(of, _)| *of == target).map(|(_, recovery)| *recovery).collect();
        let (worst, limit) = (measured.iter().max().copied(), Duration::from_secs(limit));
        let met = worst.map_or("", |worst| if worst <= Recovery::After(limit) { "met" } else { MISSED });
        let (shown, limit) = (show(worst.unwrap_or_default()), format!("≤ {} s", limit.as_secs()));
        [name.to_owned(), limit, shown, measured.len().to_string(), met.to_owned()]
    });
    let wasted = ended.violations.iter().filter(|one| one.invariant == Invariant::NoAttemptLostToOutage).count();
    let disturbed = |attempt: &&AttemptFacts| ended.claims.disturbed.iter().any(|one| one.touches(attempt));
    let undisturbed = ended.evidence.attempts().filter(|attempt| !disturbed(attempt)).count();
    let met = if wasted == 0 { "met" } else { MISSED };
    let outages =
        ["attempts lost to outages", "0", &wasted.to_string(), &undisturbed.to_string(), met].map(str::to_owned);
    times.into_iter().chain([outages]).collect()
}

fn show(recovery: Recovery) -> String {
    match recovery {
        Recovery::NotMeasured => "not measured".to_owned(),
        Recovery::After(time) => format!("{:.2} s", time.as_secs_f64()),
        Recovery::Never => "no recovery".to_owned(),
    }
}

/// Writes rows without lines around them.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    if head.iter().any(|name| !name.is_empty()) {
        table.set_header(head.iter().copied());
    }
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}
