//! What is refused before anything runs: arguments that break the schema, and a tool that nobody has.

use anyhow::{Context, ensure};
use serde_json::json;

use crate::{
    record::{Error, Submitted},
    stage::Stage,
};

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let room = json!({"city": "", "nights": 99}).to_string();
    let (call, error) = refused(stage, "reserve_hotel", &room).await?;
    ensure!(error.code == "invalid_arguments", "the code is {}", error.code);
    let mut paths: Vec<_> = error.details.iter().map(|detail| detail.path.as_str()).collect();
    paths.sort_unstable();
    ensure!(paths == ["/city", "/nights"], "rules were broken at {paths:?}");
    let record = stage.show(&call.context("the refused call is not on record")?).await?;
    ensure!((record.state.as_str(), record.attempts) == ("refused", 0), "it is on record as {record:?}");

    let (_, unknown) = refused(stage, "book_fligth", "{}").await?;
    ensure!(unknown.code == "unknown_tool", "the code is {}", unknown.code);
    ensure!(unknown.message.contains("book_flight"), "no help in {:?}", unknown.message);
    Ok(format!(
        "99 nights in a city without a name refused at {}, 0 attempts; `book_fligth` is an unknown_tool, closest: book_flight",
        paths.join(" and ")
    ))
}

/// Submits a call that must be refused, and returns its id and the reason.
async fn refused(stage: &Stage, tool: &str, arguments: &str) -> anyhow::Result<(Option<String>, Error)> {
    let ended = stage.cli.run(&["call", tool, arguments, "--json"]).await?.expect_code(1)?;
    let submitted: Submitted = ended.json()?;
    ensure!(submitted.status == "refused", "{tool} with {arguments} was {}", submitted.status);
    Ok((submitted.call, submitted.error.context("refused without a reason")?))
}
