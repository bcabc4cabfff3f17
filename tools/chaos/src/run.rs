//! One run: set the fixture, send the load, inject the faults, drain, check, report.

use std::{
    collections::HashMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::Utc;
use redial_proto::{CallId, CallState};
use redial_testkit::{CallFacts, Claims, Evidence, Subject, check};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    access::{self, TENANTS},
    cli::RunArgs,
    client::{Clients, Customer},
    faults::{Injector, Outcome, Recovery},
    fixture::{Fixture, LEASE},
    load::{self, PlannedCall},
    report::{self, Ended},
    schedule::{self, Step},
    watchdog::{Standstills, Watchdog},
};

/// Of the time that a run has: after it no more faults are injected, so that there is time to drain and to check.
const WIND_UP: Duration = Duration::from_secs(50);
/// A rolling restart and a long outage of a tool take a minute, or this part of the run if that is less.
const MINUTE_PART: u32 = 6;
/// What has not ended this long after the last fault does not end.
const DRAIN: Duration = Duration::from_mins(2);
/// Nothing was broken, and the machine stood still for so long that this proves nothing.
const INCONCLUSIVE: u8 = 3;
/// Where the evidence of violations in a run is written.
const FOLDER: &str = ".redial/chaos";

pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let (seed, began) = (args.seed.unwrap_or_else(rand::random), Instant::now());
    let plan = schedule::plan(seed, usize::try_from(args.faults)?, &args.only, args.redundancy());
    anyhow::ensure!(
        !plan.is_empty(),
        "no fault of such a run has {:?} in its name; its report lists all (some need --cluster or --standby)",
        args.only
    );
    say(&format!("seed {seed}: {} calls, {} tasks, {} faults", args.calls, args.tasks, plan.len()));
    let watchdog = Watchdog::start();
    let fixture = Fixture::start(args.redundancy()).await.context("the fixture could not be set")?;
    let nats = nats_version(fixture.servers.one_nats_url()).await?;
    let disk = if fixture.disk.is_small() { "its disk can be filled" } else { "SKIPPED: a full disk (no tmpfs here)" };
    say(&format!("everything runs on nats-server {nats}; {disk}"));
    let whole = Duration::from_mins(1) * args.minutes;
    let time = whole.saturating_sub(WIND_UP.min(whole / 4));
    let clients = clients(args, seed, &fixture, time).await?;
    let mut submitting = clients.start(&fixture.observer);
    // One fault alone may take longer.
    let part = if args.faults == 1 { 2 } else { MINUTE_PART };
    let mut injector = Injector::new(fixture, Duration::from_mins(1).min(whole / part));
    let steps = inject_faults(&mut injector, &clients, &plan, began + time).await?;
    clients.skip_pauses();
    say("the faults are over; submitting the rest, and waiting until all has ended");
    acknowledged(args, &clients, &mut submitting).await;
    drain(&injector, &watchdog).await;
    counted(&injector, &clients).await;
    injector.fixture.look_after().await;
    injector.fixture.end_roles().await;
    let (machine, evidence) = (&watchdog.seen(), injector.fixture.observer.evidence().await);
    drop(watchdog);
    let claims = claims(&injector, &clients, machine);
    let ended = Ended {
        seed,
        args,
        nats,
        took: began.elapsed(),
        planned: plan.len(),
        steps: &steps,
        injector: &injector,
        clients: &clients,
        machine,
        violations: check(&evidence, &claims),
        unexpected: unexpected(seed, args, &injector.fixture.outage, &evidence),
        evidence,
        claims,
    };
    let (text, passes) = report::make(&ended);
    if !passes {
        say(&format!("what speaks against this run is in {}", keep(&ended)?.display()));
    }
    writeln!(std::io::stdout(), "{text}")?;
    Ok(match (passes, machine.are_too_many()) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(INCONCLUSIVE),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// Waits until everything is acknowledged, or is not any more, which is a surprise.
async fn acknowledged(args: &RunArgs, clients: &Clients, submitting: &mut JoinSet<()>) {
    let mut before = None;
    // As long as it goes on.
    while before != Some(clients.acknowledged()) && !submitting.is_empty() {
        before = Some(clients.acknowledged());
        let all = async { while submitting.join_next().await.is_some() {} };
        let _still_going = tokio::time::timeout(DRAIN, all).await;
    }
    let (calls, tasks) = clients.acknowledged();
    if (u32::try_from(calls), u32::try_from(tasks)) != (Ok(args.calls), Ok(args.tasks)) {
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

/// Returns how much of something a tenant submits: half, and the first one the rest, too.
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
        let outcome = injector.step(step).await.with_context(|| step.fault.to_string())?;
        say(&line(step, &outcome, (steps.len() + 1, plan.len()), began.elapsed(), clients));
        steps.push((*step, outcome));
    }
    Ok(steps)
}

fn line(step: &Step, outcome: &Outcome, (n, all): (usize, usize), at: Duration, clients: &Clients) -> String {
    let recovery = match (&outcome.skipped, outcome.recovery) {
        (Some(why), _) => format!(": SKIPPED: {why}"),
        (None, Recovery::After(time)) => format!(": recovered after {:.2} s", time.as_secs_f64()),
        (None, Recovery::Never) => ": DID NOT RECOVER".to_owned(),
        (None, Recovery::NotMeasured) => String::new(),
    };
    let note = if outcome.note.is_empty() { String::new() } else { format!(" ({})", outcome.note) };
    let (calls, tasks) = clients.acknowledged();
    format!("{:>4} s {n:>3}/{all}  {}{recovery}{note}   [{calls} calls, {tasks} tasks]", at.as_secs(), step.fault)
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
        if taken == injector.intake_keys.len() && fixture.observer.live_besides(&[]).await == Some(0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let living = fixture.observer.living().await.unwrap_or_default();
    say(&format!("these have not ended after {DRAIN:?}:\n{}", living.join("\n")));
}

/// Waits until each call that ended is in the statistics, or in the queue for them, exactly once.
async fn counted(injector: &Injector, clients: &Clients) {
    let counted = injector.fixture.observer.ended_and_counted().await;
    if counted.is_none_or(|(ended, counted)| ended != counted) {
        clients.log().surprises.push(format!("calls that ended, and those that were counted: {counted:?}"));
    }
}

/// Returns what clients received and what tools did.
fn claims(injector: &Injector, clients: &Clients, machine: &Standstills) -> Claims {
    let (fixture, mut claims) = (&injector.fixture, clients.claims());
    claims.acknowledged.extend(injector.calls.iter().cloned());
    Claims {
        intake_keys: injector.intake_keys.clone(),
        tool_events: fixture.ledger.entries(),
        disturbed: fixture.disturbed.iter().cloned().chain(machine.disturbances(LEASE)).collect(),
        paused: fixture.paused.clone(),
        heard: [claims.heard, vec![fixture.mallory.heard()]].concat(),
        ..claims
    }
}

/// Returns the calls that did not end as they should, by the orders that their tools were given.
fn unexpected(seed: u64, args: &RunArgs, outage: &Path, evidence: &Evidence) -> Vec<(CallId, String)> {
    let mut planned: HashMap<(&str, String), PlannedCall> = HashMap::new();
    for (n, (tenant, _)) in (0..).zip(TENANTS) {
        let calls = load::calls(seed, tenant, part(args.calls, n), outage);
        planned.extend(calls.into_iter().filter_map(|call| Some(((tenant, call.submission.key.clone()?), call))));
    }
    let as_ordered = |call: &CallFacts| match call.key.as_deref() {
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
fn keep(run: &Ended<'_>) -> anyhow::Result<PathBuf> {
    let (fixture, folder) = (&run.injector.fixture, Path::new(FOLDER).join(format!("seed-{}", run.seed)));
    let evidence = &run.evidence;
    let _none_yet = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let of_checker = run.violations.iter().map(|violation| {
        let call = if let Subject::Call(call) = violation.about { evidence.calls.get(&call) } else { None };
        format!("{violation}\n  {call:?}\n")
    });
    let own = run
        .unexpected
        .iter()
        .map(|(call, found)| format!("EndsAsOrdered: {found}\n  {:?}\n", evidence.calls.get(call)));
    std::fs::write(folder.join("violations"), of_checker.chain(own).collect::<String>())?;
    std::fs::copy(fixture.ledger.path(), folder.join("ledger"))?;
    for (n, (name, output)) in fixture.outputs.iter().enumerate() {
        std::fs::write(folder.join(format!("{n:03}-{name}.log")), output)?;
    }
    Ok(folder)
}

/// Asks a server for its version, which it says before anybody asks.
async fn nats_version(url: &str) -> anyhow::Result<String> {
    let address = url.rsplit_once('@').map_or(url, |(_, address)| address);
    let mut line = String::new();
    BufReader::new(TcpStream::connect(address).await?).read_line(&mut line).await?;
    let info: serde_json::Value = serde_json::from_str(line.trim_start_matches("INFO "))?;
    Ok(info["version"].as_str().unwrap_or("of unknown version").to_owned())
}

/// Prints progress for the operator of the run.
pub(crate) fn say(text: &str) {
    let _nobody_watches = writeln!(std::io::stderr(), "chaos: {text}");
}
