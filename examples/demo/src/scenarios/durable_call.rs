//! A call is submitted twice with one key. Its HTTP service answers 503 twice, with `Retry-After: 1`, and then 200.

use anyhow::ensure;
use chrono::TimeDelta;

use crate::{output::seconds, record::Submitted, stack::Stack};

/// The service's `Retry-After`.
const RETRY_AFTER: TimeDelta = TimeDelta::seconds(1);
const KEY: &str = "trip-17";

pub(super) async fn run(stack: &Stack) -> anyhow::Result<String> {
    let submit = ["call", "reserve_hotel", r#"{"city": "成都", "nights": 2}"#, "--key", KEY];
    let first: Submitted = stack.cli.json(&submit).await?;
    let again: Submitted = stack.cli.json(&submit).await?;
    ensure!(first.call == again.call && again.status == "existing", "the repeated submission returned {again:?}");

    let call = stack.wait_for_call(&first.call()?).await?;
    let outcomes = call.outcomes();
    ensure!(outcomes == ["unavailable", "unavailable", "succeeded"], "the attempts ended as {outcomes:?}");
    ensure!(call.output()["reservation"] == "H-4711", "the result is {}", call.output());

    let requests = stack.http_service.requests("/hotels");
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    ensure!(statuses == [503, 503, 200], "the service answered {statuses:?}");
    let pauses = requests.iter().zip(requests.iter().skip(1)).map(|(before, after)| after.at - before.at);
    let pauses = pauses.map(TimeDelta::from_std).collect::<Result<Vec<_>, _>>()?;
    ensure!(pauses.iter().all(|pause| *pause >= RETRY_AFTER), "the service received retries too early: {pauses:?}");
    let key = requests.first().and_then(|request| request.key.as_ref());
    ensure!(key.is_some(), "the first request had no Idempotency-Key");
    ensure!(requests.iter().all(|request| request.key.as_ref() == key), "the Idempotency-Key changed: {requests:?}");
    let pauses = pauses.into_iter().map(seconds).collect::<Vec<_>>().join(" and ");
    Ok(format!(
        "submitted twice, one call; 503, 503, 200: attempt 3 succeeded; pauses of {pauses} (Retry-After: 1); \
         one Idempotency-Key"
    ))
}
