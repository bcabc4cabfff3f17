//! A worker is killed with SIGKILL during a call, and another one runs the call again.

use anyhow::ensure;
use chrono::Utc;

use crate::{
    output::seconds,
    poll::until,
    record::Submitted,
    stack::{LEASE, Stack},
};

pub(super) async fn run(stack: &mut Stack) -> anyhow::Result<String> {
    let submitted: Submitted = stack.cli.json(&["call", "refresh_prices", r#"{"airlines": 5}"#]).await?;
    let id = submitted.call()?;
    let started = async || {
        let call = stack.show_call(&id).await?;
        Ok(call.attempts_made.first().filter(|_| call.state == "running").cloned())
    };
    let first = until("a worker runs the call", started).await?;
    let victim = stack.workers.name_of(&first.worker)?.to_owned();
    stack.workers.kill(&victim).await?;
    let killed_at = Utc::now();
    ensure!(!stack.show_call(&id).await?.has_ended(), "the call ended before {victim} was killed");

    let call = stack.wait_for_call(&id).await?;
    ensure!(call.outcomes() == ["lost", "succeeded"], "the attempts ended as {:?}", call.outcomes());
    ensure!(call.output()["refreshed"] == 5, "the result is {}", call.output());
    let second = &call.attempts_made[1];
    let survivor = stack.workers.name_of(&second.worker)?.to_owned();
    stack.start_worker(&victim)?;
    stack.wait_for_tools().await?;
    Ok(format!(
        "{victim} killed {} into the call: attempt 1 lost; {survivor} began attempt 2 after {} (lease {} s) and succeeded",
        seconds(killed_at - first.started_at),
        seconds(second.started_at - killed_at),
        LEASE.as_secs()
    ))
}
