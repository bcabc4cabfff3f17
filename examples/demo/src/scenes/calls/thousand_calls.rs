//! A file of 1,000 good lines and two bad ones, submitted twice; two workers do the work, each call once.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
    fs,
};

use anyhow::{Context, ensure};
use chrono::NaiveDate;
use serde_json::json;

use crate::{
    record::{CallLine, Tally},
    stage::{Stage, until},
};

const GOOD: usize = 1000;
/// Where the bad lines are: one that is no JSON, one that breaks the schema.
const BROKEN_LINE: usize = 400;
const WRONG_LINE: usize = 800;
const CONVERSATION: &str = "company-outing";

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let file = stage.folder().join("calls.jsonl");
    fs::write(&file, lines(stage.dates.later)?)?;
    let file = file.to_str().context("the folder's name is no Unicode")?;
    let earlier: HashSet<String> = stage.books.bookings()?.into_iter().map(|request| request.key).collect();

    let first = stage.cli.run(&["submit", file, "--json"]).await?.expect_code(1)?;
    let tally: Tally = first.json()?;
    ensure!(tally == Tally { accepted: 1000, existing: 0, refused: 1, rejected: 1 }, "submitted: {tally:?}");
    for number in [BROKEN_LINE, WRONG_LINE] {
        ensure!(first.stderr.contains(&format!("line {number}: ")), "line {number} is not named: {}", first.stderr);
    }
    let again: Tally = stage.cli.run(&["submit", file, "--json"]).await?.expect_code(1)?.json()?;
    ensure!(again.accepted == 0, "the second time, {} were accepted", again.accepted);

    let calls = until("1,000 calls have succeeded", async || succeeded(stage).await).await?;
    ensure!(calls.iter().all(|call| call.attempts == 1), "some call took more than one attempt");
    let mut requests = stage.books.bookings()?;
    requests.retain(|request| !earlier.contains(&request.key));
    let keys: HashSet<&str> = requests.iter().map(|request| request.key.as_str()).collect();
    ensure!(
        (requests.len(), keys.len()) == (GOOD, GOOD),
        "{} bookings, {} of them different",
        requests.len(),
        keys.len()
    );
    let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
    for request in &requests {
        *shares.entry(&request.client).or_default() += 1;
    }
    ensure!(shares.len() == 2, "not two workers did the work: {shares:?}");
    Ok(line(&calls, &shares))
}

fn line(calls: &[CallLine], shares: &BTreeMap<&str, usize>) -> String {
    let begin = calls.iter().map(|call| call.submitted_at).min();
    let end = calls.iter().filter_map(|call| call.finished_at).max();
    let took = begin.zip(end).map(|(begin, end)| (end - begin).as_seconds_f64()).unwrap_or_default();
    let shares: Vec<String> = shares.iter().map(|(worker, calls)| format!("{worker} {calls}")).collect();
    format!(
        "each ran once, all in {took:.1} s ({}); bad lines {BROKEN_LINE} and {WRONG_LINE} named; the file again: nothing new",
        shares.join(", ")
    )
}

/// The file: flights of a whole company, with two slips.
fn lines(date: NaiveDate) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut good = 0;
    for number in 1..=GOOD + 2 {
        let passengers = if number == WRONG_LINE { json!("many") } else { json!(1 + good % 5) };
        let flight = json!({"origin": "上海", "destination": "成都", "date": date, "passengers": passengers});
        let call = json!({"tool": "book_flight", "arguments": flight, "conversation": CONVERSATION});
        match number {
            BROKEN_LINE => writeln!(text, "{{\"tool\": \"book_flight\", \"arguments\": {{\"origin\"")?,
            _ => writeln!(text, "{call}")?,
        }
        good += usize::from(![BROKEN_LINE, WRONG_LINE].contains(&number));
    }
    Ok(text)
}

/// The calls, when all have succeeded; none before.
async fn succeeded(stage: &Stage) -> anyhow::Result<Option<Vec<CallLine>>> {
    let calls: Vec<CallLine> = stage.cli.lines(&["history", "--conversation", CONVERSATION, "--limit", "2000"]).await?;
    let bad = calls.iter().find(|call| !["ready", "running", "succeeded", "refused"].contains(&call.state.as_str()));
    ensure!(bad.is_none(), "a call is {:?}", bad.map(|call| &call.state));
    let done: Vec<CallLine> = calls.into_iter().filter(|call| call.state == "succeeded").collect();
    Ok((done.len() == GOOD).then_some(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_1000_good_lines_and_the_bad_ones_in_their_places() {
        let text = lines("2026-12-20".parse().unwrap()).unwrap();
        let lines: Vec<Option<serde_json::Value>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(lines.len(), GOOD + 2);
        assert_eq!(lines.iter().position(Option::is_none), Some(BROKEN_LINE - 1));
        let wrong = |line: &Option<serde_json::Value>| {
            line.as_ref().is_some_and(|line| !line["arguments"]["passengers"].is_u64())
        };
        assert_eq!(lines.iter().filter(|line| wrong(line)).count(), 1);
        assert!(wrong(&lines[WRONG_LINE - 1]));
    }
}
