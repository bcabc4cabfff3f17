//! Dispatcher, NATS and Postgres are killed with SIGKILL while a call waits for its retry; the retry still starts on
//! time.

use anyhow::{Context, ensure};
use chrono::{TimeDelta, Utc};

use crate::{output::seconds, poll::until, record::Submitted, stack::Stack};

/// How late a retry may start when everything is up.
const TOLERANCE: TimeDelta = TimeDelta::seconds(2);

pub(super) async fn run(stack: &mut Stack) -> anyhow::Result<String> {
    let submitted: Submitted = stack.cli.json(&["call", "order_taxi", r#"{"from": "外滩"}"#]).await?;
    let id = submitted.call()?;
    let waiting = async || {
        let call = stack.show_call(&id).await?;
        Ok(call.attempts_made.first().filter(|_| call.state == "retry_wait").and_then(|first| first.retry_at))
    };
    let planned = until("the call waits for its retry", waiting).await?;
    stack.kill_dev().await?;
    let left = planned - Utc::now();
    ensure!(left > TimeDelta::seconds(1), "the retry was due too soon after the kill: in {}", seconds(left));
    let took = stack.start_dev().await?;
    let up_at = Utc::now();

    let call = stack.wait_for_call(&id).await?;
    ensure!(call.outcomes() == ["unavailable", "succeeded"], "the attempts ended as {:?}", call.outcomes());
    let second = call.attempts_made.get(1).context("there is no second attempt")?;
    let late = second.started_at - planned;
    ensure!(late >= TimeDelta::zero(), "the retry started {} too early", seconds(-late));
    ensure!(second.started_at <= planned.max(up_at) + TOLERANCE, "the retry started {} late", seconds(late));
    let requests = stack.http_service.requests("/taxis");
    ensure!(requests.len() == 2, "the service received {} requests, not 2", requests.len());
    ensure!(requests[0].key.is_some() && requests[0].key == requests[1].key, "the Idempotency-Key changed");
    Ok(format!(
        "dispatcher, NATS and Postgres killed {} before a retry was due, back after {:.2} s; it started {} after its time",
        seconds(left),
        took.as_secs_f64(),
        seconds(late)
    ))
}
