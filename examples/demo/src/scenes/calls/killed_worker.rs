//! A worker is killed with SIGKILL in mid-call; another one does the work.

use anyhow::{Context, ensure};
use chrono::Utc;

use super::seconds;
use crate::{
    record::Submitted,
    stage::{LEASE, Stage, until},
};

pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<String> {
    let submitted: Submitted = stage.cli.json(&["call", "refresh_prices", r#"{"airlines": 5}"#]).await?;
    let id = submitted.call()?;
    let started = async || {
        let call = stage.show(&id).await?;
        Ok(call.attempts_made.first().filter(|_| call.state == "running").cloned())
    };
    let first = until("a worker runs the call", started).await?;
    let victim = stage.workers.name_of(&first.worker).with_context(|| format!("{} is none of ours", first.worker))?;
    let victim = victim.to_owned();
    stage.workers.kill(&victim).await?;
    let killed_at = Utc::now();
    ensure!(!stage.show(&id).await?.has_ended(), "the call ended before {victim} was killed");

    let call = stage.end_of(&id).await?;
    ensure!(call.outcomes() == ["lost", "succeeded"], "the attempts ended as {:?}", call.outcomes());
    ensure!(call.output()["refreshed"] == 5, "the result is {}", call.output());
    let second = &call.attempts_made[1];
    let survivor = stage.workers.name_of(&second.worker).with_context(|| format!("{} did it", second.worker))?;
    let line = format!(
        "{victim} killed {} into the call: attempt 1 lost; {survivor} began attempt 2 after {} (lease {} s) and succeeded",
        seconds(killed_at - first.started_at),
        seconds(second.started_at - killed_at),
        LEASE.as_secs()
    );
    stage.start_worker("worker-c")?;
    stage.tools_are_there().await?;
    Ok(line)
}
