//! A tool that is a Rust function, in a worker process of its own; and its own rules, which no schema can say.

use anyhow::{Context, ensure};
use serde_json::json;

use crate::{record::Submitted, stage::Stage};

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let flight =
        json!({"origin": "上海", "destination": "北京", "date": stage.dates.later, "passengers": 2}).to_string();
    let submitted: Submitted = stage.cli.json(&["call", "book_flight", &flight]).await?;
    let call = stage.end_of(&submitted.call()?).await?;
    ensure!(call.outcomes() == ["succeeded"], "the attempts ended as {:?}: {:?}", call.outcomes(), call.message);
    let output = call.output();
    let booking = output["booking"].as_str().filter(|number| number.len() == 6);
    let booking = booking.with_context(|| format!("the result is {output}"))?;
    let id = &call.attempts_made[0].worker;
    let worker = stage.workers.name_of(id).with_context(|| format!("it ran on {id}, which has no such tool"))?;

    let nowhere = json!({"origin": "北京", "destination": "北京", "date": "2020-02-02", "passengers": 1}).to_string();
    let submitted: Submitted = stage.cli.json(&["call", "book_flight", &nowhere]).await?;
    let refused = stage.end_of(&submitted.call()?).await?;
    ensure!(refused.outcomes() == ["invalid_arguments"], "the attempts ended as {:?}", refused.outcomes());
    let details = refused.attempts_made[0].details.clone().unwrap_or_default();
    let paths: Vec<_> = details.iter().map(|detail| detail.path.as_str()).collect();
    ensure!(paths == ["/destination", "/date"], "the tool's own rules were broken at {paths:?}");
    Ok(format!(
        "上海 → 北京 booked as {booking} by {worker}; its own rules refuse 北京 → 北京 in 2020 at {}, not retried",
        paths.join(" and ")
    ))
}
