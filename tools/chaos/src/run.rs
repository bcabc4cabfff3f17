//! One run: set the fixture, send the load, inject the faults, drain, check, report.

use std::{
    collections::HashMap,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::Utc;
use redial_proto::{CallId, CallState};
use redial_testkit::{CallFacts, Claims, Evidence, Subject, Violation, check};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    access::{self, TENANTS},
    cli::RunArgs,
    client::{Clients, Customer},
    ended::{Ended, LEASE, Over},
    faults::{Injector, Minutes, Outcome, Recovery, Target},
    fixture::{Fixture, Python},
    load::{self, PlannedCall},
    report::{self, Report},
    schedule::{self, Step},
    watchdog::Watchdog,
};

/// Of the time that a run has: after it no more faults are injected, so that there is time to drain and to check.
const WIND_UP: Duration = Duration::from_secs(50);
/// A rolling restart and a long outage of a tool take a minute, or this part of the run if that is less.
const MINUTE_PART: u32 = 6;
/// What has not ended this long after the last fault does not end.
const DRAIN: Duration = Duration::from_mins(2);
/// Where the evidence of violations in a run is written.
const FOLDER: &str = ".redial/chaos";

/// See the module.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Report> {
    let (seed, began) = (args.seed.unwrap_or_else(rand::random), Instant::now());
    let plan = schedule::plan(seed, usize::try_from(args.faults)?, &args.only, args.redundancy());
    anyhow::ensure!(
        !plan.is_empty(),
        "no fault of such a run has {:?} in its name; its report lists all (some need --cluster or --standby)",
        args.only
    );
    say(&format!("seed {seed}: {} calls, {} tasks, {} faults", args.calls, args.tasks, plan.len()));
    let watchdog = Watchdog::start();
    let python = python(args)?;
    let fixture = Fixture::start(LEASE, clock_error(seed), args.redundancy(), python);
    let fixture = fixture.await.context("the fixture could not be set")?;
    let nats = nats_version(fixture.servers.one_nats_url()).await?;
    say(&format!("everything runs on nats-server {nats}; {}", limits(&fixture)));
    let whole = Duration::from_mins(1) * args.minutes;
    let time = whole.saturating_sub(WIND_UP.min(whole / 4));
    let clients = clients(args, seed, &fixture, time).await?;
    let mut submitting = clients.start(&fixture.observer);
    let minutes = Minutes {
        of_the_whole: Duration::from_mins(1).min(whole / MINUTE_PART),
        of_leaders: Duration::from_mins(1).min(if args.faults == 1 { whole / 2 } else { whole / MINUTE_PART }),
    };
    let mut injector = Injector::new(fixture, minutes);
    let steps = inject_faults(&mut injector, &clients, &plan, began + time).await?;
    clients.skip_pauses();
    say("the faults are over; submitting the rest, and waiting until all has ended");
    acknowledged(args, &clients, &mut submitting).await;
    drain(&injector, &watchdog).await;
    injector.fixture.look_after().await?;
    injector.fixture.end_roles().await;
    let (took, planned) = (began.elapsed(), plan.len());
    let (injector, clients, machine) = (&injector, &clients, &watchdog.seen());
    drop(watchdog);
    report_of(&Over { seed, args, nats, took, planned, steps: &steps, injector, clients, machine }).await
}

/// What the workers in Python are, if there are any.
fn python(args: &RunArgs) -> anyhow::Result<Option<Python>> {
    let Some(program) = args.python.clone() else {
        say("no worker is in Python: neither --python nor REDIAL_PYTHON names an interpreter");
        return Ok(None);
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/worker.py");
    say(&format!("workers in Python: {}", args.python_workers));
    Ok(Some(Python { program, script, workers: usize::try_from(args.python_workers)? }))
}

/// Waits until everything is acknowledged, or is not any more, which is a surprise.
async fn acknowledged(args: &RunArgs, clients: &Clients, submitting: &mut JoinSet<()>) {
    let all = async {
        while let Some(done) = submitting.join_next().await {
            if let Err(error) = done {
                clients.log().surprises.push(format!("a client broke: {error}"));
            }
        }
    };
    // As long as it goes on.
    let stuck = async {
        let mut before = clients.acknowledged();
        loop {
            tokio::time::sleep(DRAIN).await;
            let now = clients.acknowledged();
            if now == before {
                return;
            }
            before = now;
        }
    };
    tokio::select! {
        () = all => {}
        () = stuck => {}
    }
    let wanted = usize::try_from(args.calls).and_then(|calls| Ok((calls, usize::try_from(args.tasks)?)));
    let (calls, tasks) = clients.acknowledged();
    if wanted != Ok((calls, tasks)) {
        let found = format!("{calls} of {} calls and {tasks} of {} tasks were acknowledged", args.calls, args.tasks);
        clients.log().surprises.push(found);
    }
}

async fn clients(args: &RunArgs, seed: u64, fixture: &Fixture, time: Duration) -> anyhow::Result<Arc<Clients>> {
    let mut customers = Vec::new();
    for (n, user) in (0..).zip(TENANTS) {
        let queue = access::connect(&fixture.client_url, user).await?;
        let calls = load::calls(seed, user.0, part(args.calls, n), &fixture.outage);
        customers.push(Customer::new(queue, calls, load::tasks(seed, user.0, part(args.tasks, n))).await?);
    }
    Ok(Clients::new(customers, time))
}

/// How much of something a tenant submits: half, and the first one the rest, too.
fn part(all: u32, tenant: u32) -> u32 {
    if tenant == 0 { all.div_ceil(2) } else { all / 2 }
}

/// Injects one fault after another, as long as there is time.
async fn inject_faults(
    injector: &mut Injector,
    clients: &Clients,
    plan: &[Step],
    until: Instant,
) -> anyhow::Result<Vec<(Step, Outcome)>> {
    let (mut steps, began) = (Vec::new(), Instant::now());
    for step in plan {
        if Instant::now() > until {
            say(&format!("no time for the last {} faults", plan.len() - steps.len()));
            break;
        }
        let outcome = injector.step(step).await.with_context(|| step.to_string())?;
        say(&line(step, &outcome, (steps.len() + 1, plan.len()), began.elapsed(), clients));
        steps.push((*step, outcome));
    }
    Ok(steps)
}

/// Compares the guarantees with what is on record.
async fn report_of(run: &Over<'_>) -> anyhow::Result<Report> {
    let fixture = &run.injector.fixture;
    let evidence = fixture.observer.evidence().await;
    let claims = claims(run);
    let violations = check(&evidence, &claims);
    let unexpected = unexpected(run, &evidence);
    let leaks = fixture.leaks().await;
    let report = report::make(&Ended {
        run,
        evidence: &evidence,
        claims: &claims,
        violations: &violations,
        unexpected: &unexpected,
        leaks: &leaks,
    });
    if !report.passes(true) {
        let folder = keep(run, &evidence, &violations, &unexpected)?;
        say(&format!("what speaks against this run is in {}", folder.display()));
    }
    Ok(report)
}

/// By how many seconds the clock of one worker is wrong: an hour to two days, in either direction.
fn clock_error(seed: u64) -> i64 {
    let hours = i64::try_from(seed % 48).unwrap_or(0) + 1;
    if seed.is_multiple_of(2) { hours * 3600 } else { -hours * 3600 }
}

/// What is not to be had here.
fn limits(fixture: &Fixture) -> String {
    let disk = if fixture.disk.is_small() { "its disk can be filled" } else { "SKIPPED: a full disk (no tmpfs here)" };
    let clock =
        if fixture.wrong_clocks > 0 { "worker 3 has a wrong clock" } else { "SKIPPED: a wrong clock (no C compiler)" };
    format!("{disk}; {clock}")
}

fn line(step: &Step, outcome: &Outcome, place: (usize, usize), at: Duration, clients: &Clients) -> String {
    let recovery = match outcome.recovery {
        Recovery::After(time) => format!(": recovered after {:.2} s", time.as_secs_f64()),
        Recovery::Never => ": DID NOT RECOVER".to_owned(),
        Recovery::NotMeasured => String::new(),
    };
    let skipped = outcome.skipped.as_ref().map(|why| format!(": SKIPPED: {why}")).unwrap_or_default();
    let pauses = outcome.measured.iter().filter(|one| one.target == Target::OthersGoOn);
    let pauses = pauses.filter_map(|one| match one.recovery {
        Recovery::After(time) => Some(format!("others paused for {:.2} s at most", time.as_secs_f64())),
        _ => None,
    });
    let notes: Vec<String> = Some(outcome.note.clone()).into_iter().chain(pauses).filter(|it| !it.is_empty()).collect();
    let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let (calls, tasks) = clients.acknowledged();
    let (n, all) = place;
    format!("{:>4} s {n:>3}/{all}  {step}{recovery}{skipped}{note}   [{calls} calls, {tasks} tasks]", at.as_secs())
}

/// Waits until everything has ended, or does not any more. What NATS delivered to a dispatcher that was killed is not on record
/// for up to 30 s.
async fn drain(injector: &Injector, watchdog: &Watchdog) {
    let fixture = &injector.fixture;
    let (began, from, mut taken) = (Instant::now(), Utc::now(), 0);
    while began.elapsed() < DRAIN + watchdog.seen().within(from, Utc::now()) {
        while let Some(key) = injector.intake_keys.get(taken)
            && matches!(fixture.observer.call_of_key(key).await, Some(Some(_)))
        {
            taken += 1;
        }
        if taken == injector.intake_keys.len() && fixture.observer.live().await == Some(0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let living = fixture.observer.living().await.unwrap_or_default();
    say(&format!("these have not ended after {DRAIN:?}:\n{}", living.join("\n")));
}

/// What clients received and what tools did.
fn claims(run: &Over<'_>) -> Claims {
    let (injector, fixture) = (run.injector, &run.injector.fixture);
    let mut claims = run.clients.claims();
    claims.acknowledged.extend(injector.calls.iter().cloned());
    claims.tasks.extend(&injector.tasks);
    Claims {
        intake_keys: injector.intake_keys.clone(),
        tool_events: fixture.ledger.entries(),
        disturbed: fixture.disturbed.iter().cloned().chain(run.machine.disturbances(LEASE)).collect(),
        paused: fixture.paused.clone(),
        heard: [claims.heard, vec![fixture.mallory.heard(), fixture.rogue.heard()]].concat(),
        ..claims
    }
}

/// Calls that did not end as they should, by the orders that their tools were given.
fn unexpected(run: &Over<'_>, evidence: &Evidence) -> Vec<(CallId, String)> {
    let outage = &run.injector.fixture.outage;
    let planned = (0..)
        .zip(TENANTS)
        .map(|(n, (tenant, _))| (tenant, load::calls(run.seed, tenant, part(run.args.calls, n), outage)));
    let planned: Vec<(&str, Vec<PlannedCall>)> = planned.collect();
    let by_key = |(tenant, calls): &'_ (&'static str, Vec<PlannedCall>)| {
        let tenant = *tenant;
        calls
            .iter()
            .filter_map(move |wish| Some(((tenant, wish.submission.key.clone()?), wish.clone())))
            .collect::<Vec<_>>()
    };
    let planned: HashMap<(&str, String), PlannedCall> = planned.iter().flat_map(by_key).collect();
    let as_ordered = |call: &CallFacts| match call.key.as_deref() {
        Some(key) if key.starts_with(load::POISON) => load::died_often_enough(call),
        Some(key) => planned
            .get(&(call.tenant.as_str(), key.to_owned()))
            .map_or(call.state == CallState::Succeeded, |wish| load::may_end(wish, call.effect, call.state)),
        // Of a task.
        None => true,
    };
    let calls = evidence.calls.values().filter(|call| !as_ordered(call));
    let tell = |call: &CallFacts| format!("call {} of {} ended {} ({:?})", call.id, call.tool, call.state, call.class);
    calls.map(|call| (call.id, tell(call))).collect()
}

/// Saves the evidence for an analysis of the failure.
fn keep(
    run: &Over<'_>,
    evidence: &Evidence,
    violations: &[Violation],
    unexpected: &[(CallId, String)],
) -> anyhow::Result<PathBuf> {
    let (fixture, folder) = (&run.injector.fixture, Path::new(FOLDER).join(format!("seed-{}", run.seed)));
    let _none_yet = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let mut lines = Vec::new();
    for violation in violations {
        lines.push(violation.to_string());
        if let Subject::Call(call) = violation.about {
            lines.push(format!("  {:?}", evidence.calls.get(&call)));
        }
    }
    for (call, found) in unexpected {
        lines.push(format!("EndsAsOrdered: {found}\n  {:?}", evidence.calls.get(call)));
    }
    std::fs::write(folder.join("violations"), lines.join("\n"))?;
    std::fs::copy(fixture.ledger.path(), folder.join("ledger"))?;
    run.clients.write(&folder.join("client"))?;
    for (n, (name, output)) in fixture.outputs.iter().enumerate() {
        std::fs::write(folder.join(format!("{n:03}-{name}.log")), output)?;
    }
    Ok(folder)
}

/// A server says its version before anybody asks.
async fn nats_version(url: &str) -> anyhow::Result<String> {
    let address = url.rsplit_once('@').map_or(url, |(_, address)| address);
    let mut line = String::new();
    BufReader::new(TcpStream::connect(address).await?).read_line(&mut line).await?;
    let info: serde_json::Value = serde_json::from_str(line.trim_start_matches("INFO "))?;
    Ok(info["version"].as_str().unwrap_or("of unknown version").to_owned())
}

/// Progress for the operator of the run.
pub(crate) fn say(text: &str) {
    let _nobody_watches = writeln!(std::io::stderr(), "chaos: {text}");
}
