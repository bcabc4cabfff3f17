//! An HTTP tool whose service answers 503 twice, with `Retry-After: 1`, and then 200.

use anyhow::ensure;
use chrono::TimeDelta;

use super::seconds;
use crate::{record::Submitted, stage::Stage};

/// What the service says.
const RETRY_AFTER: TimeDelta = TimeDelta::seconds(1);

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let arguments = r#"{"city": "成都", "nights": 2}"#;
    let submitted: Submitted = stage.cli.json(&["call", "reserve_hotel", arguments]).await?;
    let call = stage.end_of(&submitted.call()?).await?;
    let outcomes = call.outcomes();
    ensure!(outcomes == ["unavailable", "unavailable", "succeeded"], "the attempts ended as {outcomes:?}");
    ensure!(call.output()["reservation"] == "H-4711", "the result is {}", call.output());
    let planned = call.planned_after()?;
    ensure!(planned.iter().all(|wait| *wait >= RETRY_AFTER), "retries were planned too soon: {planned:?}");

    let requests = stage.partner.requests("/hotels");
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    ensure!(statuses == [503, 503, 200], "the server answered {statuses:?}");
    let pauses = requests.iter().zip(requests.iter().skip(1)).map(|(before, after)| after.at - before.at);
    let pauses = pauses.map(TimeDelta::from_std).collect::<Result<Vec<_>, _>>()?;
    ensure!(pauses.iter().all(|pause| *pause >= RETRY_AFTER), "the server saw retries too soon: {pauses:?}");
    let key = requests.first().and_then(|request| request.key.as_ref());
    ensure!(key.is_some(), "the first request had no Idempotency-Key");
    ensure!(requests.iter().all(|request| request.key.as_ref() == key), "the Idempotency-Key changed: {requests:?}");
    let pauses = pauses.into_iter().map(seconds).collect::<Vec<_>>().join(" and ");
    Ok(format!(
        "503, 503, 200: succeeded on attempt 3; pauses of {pauses} (Retry-After: 1); 3 requests, one Idempotency-Key"
    ))
}
