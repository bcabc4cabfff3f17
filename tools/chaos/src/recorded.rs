//! `redial-chaos check`: compares what another run was told, what its tools did and what is on record.

use std::{fs, io::Write as _, process::ExitCode};

use chrono::DateTime;
use redial_proto::{CallState, Submission, ToolEffect};
use redial_testkit::{CallFacts, Claims, Disturbance, Ledger, Observer};

use crate::{
    cli::CheckArgs,
    report::{Rule, verdict},
};

/// Returns exit code 1 if an invariant is broken.
pub(crate) async fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let evidence = Observer::new(&args.database_url).evidence().await;
    let lines = fs::read_to_string(&args.submitted)?;
    let keys = lines.lines().map(|line| Ok(serde_json::from_str::<Submission>(line)?.key));
    let claims = Claims {
        intake_keys: keys.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect(),
        tool_events: Ledger::open(&args.ledger).entries(),
        // Any worker may have been broken at any time.
        disturbed: vec![Disturbance { worker: None, from: DateTime::UNIX_EPOCH, until: None }],
        ..Claims::default()
    };
    let mut rules = Rule::of_checker(&redial_testkit::check(&evidence, &claims));
    let unexpected = evidence.calls.values().filter(|call| !may_end(call));
    let tell = |call: &CallFacts| format!("call {} of {} ended {} ({:?})", call.id, call.tool, call.state, call.class);
    rules.push(Rule::new("EndsAsOrdered", unexpected.map(tell).collect()));
    let (calls, attempts) = (evidence.calls.len(), evidence.attempts().count());
    writeln!(
        std::io::stdout(),
        "{calls} calls, {attempts} attempts, of which {} were lost with their worker, {} tasks\n\n{}",
        evidence.lost(),
        evidence.tasks.len(),
        verdict(&rules)
    )?;
    Ok(if rules.iter().all(Rule::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// True if the call ended as it must: every call succeeds in the end; only of an `unsafe` one it may stay unknown
/// whether it did.
fn may_end(call: &CallFacts) -> bool {
    match call.state {
        CallState::Succeeded => true,
        CallState::Unknown => call.effect == ToolEffect::Unsafe,
        _ => false,
    }
}
