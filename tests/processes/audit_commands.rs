//! The commands that read records and change calls: the real program against real servers.

mod erasing;
mod escapes;
pub(crate) mod fixture;
mod ids;
mod logins;
mod output;
mod questions;
mod resending;
mod tokens;
mod waiting;

use redial_proto::subjects::Intake;
use std::time::Duration;

use fixture::Fixture;
use redial_queue::{Queue, QueueConfig};
use redial_test_stack::{Reply, until};
use serde_json::{Value, json};

const NO_CALL: &str = "01936b1c-0000-7000-8000-000000000001";

async fn connect(fixture: &Fixture) -> Queue {
    Queue::connect(&QueueConfig { url: fixture.nats_url.clone(), ..QueueConfig::default() }).await.unwrap()
}

/// Fails unless the text contains these parts in this order.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, tail)) = rest.split_once(part) else { panic!("no {part:?} (in order) in\n{text}") };
        rest = tail;
    }
}

#[tokio::test]
async fn a_call_and_its_surroundings_can_be_read() {
    let fixture = Fixture::start(&[("book", "keyed"), ("sold_out", "read")]).await;
    // Postgres' jsonb rejects this.
    let booked = r#"{"booking":"CA1234","odd":"\u0000\ud800","huge":1e400000}"#;
    fixture.http.script("/book", [Reply::status(503), Reply::json(booked)]);
    fixture.http.script("/sold_out", [Reply::status(409).body("sold out")]);

    let empty = fixture.run(&["history"]).await;
    assert_eq!((empty.code, empty.out.as_str(), empty.err.as_str()), (0, "", "no call on record matches\n"));

    let book = fixture.ended("book", &[r#"{"to": "SHA"}"#, "--key", "order-17", "--conversation", "trip-9"]).await;
    let sold_out = fixture.ended("sold_out", &[]).await;
    timeline(&fixture, &book).await;
    history(&fixture, &book, &sold_out).await;
    statistics(&fixture).await;
    an_unknown_id_is_not_found(&fixture).await;
    tools_and_workers(&fixture).await;
    dead_letters(&fixture).await;
}

async fn timeline(fixture: &Fixture, book: &str) {
    let shown = fixture.out(&["show", book]).await;
    let parts = [
        book,
        "tool          book (effect keyed, pool default)",
        "key           order-17",
        "submitted by",
        "local",
        "attempt 1     failed after ",
        "retry due at 20",
        "attempt 2     succeeded after ",
        "result\n{\n  \"booking\": \"CA1234\",\n  \"odd\": \"\\u0000\\ud800\",\n  \"huge\": 1e400000\n}\n",
    ];
    assert_in_order(&shown, &parts);
    let whole = fixture.out(&["show", book, "--json"]).await;
    assert_in_order(&whole, &[r#""attempts_made":[{"attempt":1,"#, r#""class":"unavailable","#, "1e400000"]);
    assert_eq!(whole.lines().count(), 1);
}

async fn history(fixture: &Fixture, book: &str, sold_out: &str) {
    assert_eq!(fixture.calls(&[]).await, [sold_out, book]);
    let lines = fixture.out(&["history", "--json"]).await;
    assert!(lines.lines().all(|line| line.contains(r#""submitted_by":"local""#)), "{lines}");
    for filter in [["--tool", "book"], ["--state", "succeeded"], ["--conversation", "trip-9"], ["--key", "order-17"]] {
        assert_eq!(fixture.calls(&filter).await, [book], "{filter:?}");
    }
    assert_eq!(fixture.calls(&["--class", "business_rule", "--since", "1h"]).await, [sold_out]);

    let first = fixture.run(&["history", "--limit", "1"]).await;
    let parts = ["call", "tool", "state", &sold_out[..13], "sold_out", "failed", "business_rule", " ago"];
    assert_in_order(&first.out, &parts);
    assert_eq!(first.err, format!("there are more: --before {sold_out}, or raise --limit\n"));
    let second = fixture.run(&["history", "--limit", "1", "--before", sold_out]).await;
    assert!(second.out.contains(&book[..13]) && !second.out.contains(&sold_out[..13]), "{second:?}");
    fixture.shows(&["history", "--wide"], &[sold_out, "20", "host-", "409 Conflict", book, "order-17"]).await;
    assert_eq!(second.err, "", "there is no further page");
}

async fn statistics(fixture: &Fixture) {
    let tools = fixture.json(&["stats"]).await;
    let book = tools.iter().find(|tool| tool["tool"] == "book").unwrap();
    assert_eq!((&book["calls"], &book["failed"], &book["retries"]), (&json!(1), &json!(0), &json!(1)));
    assert!(book["p50_ms"].is_u64() && book["cost_usd"].is_null(), "{book}");
    let shown = fixture.run(&["stats", "--by", "class"]).await;
    assert_in_order(&shown.out, &["class", "calls", "p50", "p95", "business_rule", "succeeded", "all"]);
    assert!(shown.err.starts_with("calls that ended from 20") && shown.err.lines().all(|line| line.len() <= 80));
    let of_book = ["stats", "--by", "worker", "--csv", "--tool", "book"];
    fixture.shows(&of_book, &["worker,attempts,failed,p50_ms,p95_ms\n", "host-", ",2,1,"]).await;
}

async fn an_unknown_id_is_not_found(fixture: &Fixture) {
    let done = fixture.run(&["show", NO_CALL]).await;
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    let wanted = format!("error: no task or call {NO_CALL} is on record\nsee redial tasks and redial history; ");
    assert!(done.err.starts_with(&wanted) && done.err.ends_with(" [call_not_found]\n"), "{done:?}");
    let done = fixture.run(&["cancel", NO_CALL, "--json"]).await;
    let error = done.err.lines().find(|line| line.starts_with(r#"{"error":"#)).unwrap_or_else(|| panic!("{done:?}"));
    let error: Value = serde_json::from_str(error).unwrap();
    assert_eq!((done.code, &error["error"]["code"]), (1, &json!("call_not_found")));
}

async fn tools_and_workers(fixture: &Fixture) {
    let parts = ["tool", "effect", "book", "keyed", "1", "served", "The tool book.", "echo", "sold_out"];
    fixture.shows(&["tools"], &parts).await;
    let tool = &fixture.json(&["tools"]).await[0];
    assert_eq!((&tool["spec"]["name"], &tool["state"]), (&json!("book"), &json!("served")));
    assert!(tool.get("retries_per_second").is_none(), "it neither fails nor recovers: {tool}");
    // What has ended a moment ago counts until the next heartbeat.
    let workers = until("the worker is idle", async || {
        Some(fixture.out(&["workers"]).await).filter(|workers| workers.contains(" 0 of 192 slots"))
    })
    .await;
    assert_in_order(&workers, &["worker", "state", "host-", "alive", "0 of 192 slots", "book", "echo"]);
    assert_eq!(fixture.json(&["workers", "--all"]).await.len(), 1);
}

async fn dead_letters(fixture: &Fixture) {
    let none = fixture.run(&["dead-letters"]).await;
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", "there are no dead letters\n"));
    let queue = connect(fixture).await;
    for bad in ["{\"calls\": [{\"tool\": \"book\", \"argument\": {}}]}", "\u{1b}[2J"] {
        queue.put_intake(Intake::Calls, bad.as_bytes().to_vec().into(), None).await.unwrap();
    }
    let lines = until("both are on record", async || {
        Some(fixture.json(&["dead-letters"]).await).filter(|lines| lines.len() == 2)
    })
    .await;
    assert!(lines.iter().all(|line| line["source"] == "intake" && line["tenant"] == "default"), "{lines:?}");
    assert!(lines.iter().all(|line| line["errors"][0]["code"] == "invalid_message"), "{lines:?}");
    assert_eq!(fixture.json(&["dead-letters", "--tenant", "default"]).await, lines);
    let table = fixture.out(&["dead-letters", "--wide"]).await;
    assert!(table.contains(r"\u{1b}[2J") && table.contains("entry 0: ") && table.contains("argument"), "{table}");
    let one = fixture.run(&["dead-letters", "--limit", "1"]).await;
    assert_eq!((one.out.lines().count(), one.err.as_str()), (2, "there are older ones: --limit 10 shows more\n"));
}

#[tokio::test]
async fn calls_are_cancelled() {
    let fixture = Fixture::start(&[("hang", "read"), ("quick", "read")]).await;
    fixture.http.script("/hang", [Reply::status(200).after(Duration::from_hours(1))]);
    fixture.http.script("/quick", [Reply::json("1")]);

    let hang = fixture.out(&["call", "hang", "--key", "h"]).await.trim().to_owned();
    fixture.http.arrived(1).await;
    fixture.shows(&["show", &hang], &["state         running", "now  waits         for worker host-"]).await;
    fixture.shows(&["cancel", &hang], &[&hang, "its worker was asked to stop"]).await;

    // The same key names the same call, so this waits for its end.
    assert_eq!(fixture.ended("hang", &["--key", "h"]).await, hang);
    let parts = ["attempt 1     failed", "cancelled: ", "cancelled     ", "cancel requested while it ran"];
    fixture.shows(&["show", &hang], &parts).await;
    fixture.shows(&["cancel", &hang], &[&hang, "is cancelled"]).await;

    let quick = fixture.ended("quick", &[]).await;
    let late = fixture.run(&["cancel", &quick]).await;
    assert_eq!((late.code, late.out), (1, format!("call {quick} had already ended: succeeded\n")));
    // Newest first: each cancel is one action, whatever the id is of.
    assert_eq!(fixture.run(&["cancel", NO_CALL]).await.code, 1);
    assert_eq!(fixture.json(&["actions"]).await.len(), 4);
    fixture.shows(&["actions"], &["0 of 1", "task_not_found", "0 of 1", "done", "0 of 1", "done", " 1 ", "done"]).await;
}

#[tokio::test]
async fn ended_calls_run_again() {
    let fixture = Fixture::start(&[("book", "read"), ("risky", "unsafe")]).await;
    fixture.http.script("/book", [Reply::status(404)]);
    fixture.http.script("/risky", [Reply::hang_up()]);

    let failed = fixture.ended("book", &[r#"{"n": 0}"#]).await;
    let told = fixture.run(&["call", "risky", "--wait"]).await;
    let unknown = told.err.trim_end().rsplit(' ').next().unwrap().to_owned();
    let look = "\nwhether it took effect is unknown, see redial show ";
    assert_in_order(&told.err, &["call ", &unknown, " ended unknown after 1 attempt: ", look, &unknown]);
    one_by_its_id(&fixture, &failed, &unknown).await;
    let none = fixture.run(&["redrive", "--tool", "nothing"]).await;
    assert!(none.code == 0 && none.err.starts_with("no failed or cancelled call on record matches"), "{none:?}");
    let named = fixture.run(&["redrive", "--tool", "risky", "--dry-run", "--state", "unknown"]).await;
    assert_in_order(&named.out, &["risky", "unknown", "would run again"]);
    for n in ["1", "2"] {
        fixture.ended("book", &[&format!("{{\"n\": {n}}}"), "--conversation", "many"]).await;
    }
    fixture.http.script("/book", [Reply::json("1")]);
    let many = ["redrive", "--conversation", "many", "--class", "business_rule"];
    assert_in_order(&fixture.out(&many).await, &[" → ", " → ", "\n2 run again, 0 already redriven, 0 rejected\n"]);
    assert!(fixture.json(&many).await.iter().all(|line| line["status"] == "existing"));
}

async fn one_by_its_id(fixture: &Fixture, failed: &str, unknown: &str) {
    let dry = fixture.run(&["redrive", failed, unknown, NO_CALL, "--dry-run"]).await;
    assert_eq!(dry.code, 1, "{dry:?}");
    assert_in_order(&dry.out, &["book", "failed", "business_rule", "1", "risky", "unknown", "2 calls would run again"]);
    assert!(dry.err.contains(NO_CALL) && dry.err.contains("[call_not_found]"), "{dry:?}");
    assert_eq!(fixture.json(&["history"]).await.len(), 2, "a dry run changes nothing");

    let lines = fixture.json(&["redrive", failed]).await;
    assert_eq!((&lines[0]["redrive_of"], &lines[0]["status"]), (&json!(failed), &json!("accepted")), "{lines:?}");
    let new = lines[0]["call"].as_str().unwrap();
    let again = fixture.out(&["redrive", failed]).await;
    assert_eq!(again, format!("{failed} → {new} (already redriven)\n0 run again, 1 already redriven, 0 rejected\n"));
    fixture.shows(&["show", failed], &[&format!("redriven as   {new}")]).await;
    fixture.shows(&["show", new], &[&format!("redrive of    {failed}"), r#"{"n": 0}"#]).await;
    assert_eq!(fixture.out(&["redrive", failed, "--dry-run"]).await, "no call would run again\n");

    let mixed = fixture.run(&["redrive", NO_CALL, unknown]).await;
    assert_eq!(mixed.code, 1, "{mixed:?}");
    assert_in_order(&mixed.out, &[unknown, " → ", "1 run again, 0 already redriven, 1 rejected"]);
    assert!(mixed.err.contains("[call_not_found]"), "{mixed:?}");
}
