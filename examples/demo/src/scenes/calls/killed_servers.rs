//! Dispatcher, NATS and Postgres are killed with SIGKILL while a retry waits; it happens at its time all the same.

use anyhow::{Context, ensure};
use chrono::{TimeDelta, Utc};

use super::seconds;
use crate::{
    record::Submitted,
    stage::{Stage, until},
};

/// How late a retry may start when everything is up.
const TOLERANCE: TimeDelta = TimeDelta::seconds(2);

pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<String> {
    let submitted: Submitted = stage.cli.json(&["call", "order_taxi", r#"{"from": "外滩"}"#]).await?;
    let id = submitted.call()?;
    let waits = async || {
        let call = stage.show(&id).await?;
        Ok(call.attempts_made.first().filter(|_| call.state == "retry_wait").and_then(|first| first.retry_at))
    };
    let planned = until("the retry waits", waits).await?;
    stage.kill_dev().await?;
    let left = planned - Utc::now();
    ensure!(left > TimeDelta::seconds(1), "the retry was due too soon after the kill: in {}", seconds(left));
    let took = stage.start_dev().await?;
    let up_at = Utc::now();

    let call = stage.end_of(&id).await?;
    ensure!(call.outcomes() == ["unavailable", "succeeded"], "the attempts ended as {:?}", call.outcomes());
    let second = call.attempts_made.get(1).context("there is no second attempt")?;
    let late = second.started_at - planned;
    ensure!(late >= TimeDelta::zero(), "the retry started {} too early", seconds(-late));
    ensure!(second.started_at <= planned.max(up_at) + TOLERANCE, "the retry started {} late", seconds(late));
    let requests = stage.partner.requests("/taxis");
    ensure!(requests.len() == 2, "the server saw {} requests, not 2", requests.len());
    ensure!(requests[0].key.is_some() && requests[0].key == requests[1].key, "the Idempotency-Key changed");
    Ok(format!(
        "dispatcher, NATS, Postgres killed {} before a retry was due, back after {:.2} s; it began {} after its time",
        seconds(left),
        took.as_secs_f64(),
        seconds(late)
    ))
}
