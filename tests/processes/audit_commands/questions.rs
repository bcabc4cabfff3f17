//! Questions to the record: by worker, by values inside calls, by time taken; as CSV and as JSON.

use std::process::Stdio;

use redial_testkit::{Reply, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, process::Command};

use super::{assert_in_order, fixture::Fixture};

#[tokio::test]
async fn calls_are_found_by_what_they_hold() {
    let fixture = Fixture::start(&[("weather", "read"), ("book", "read")]).await;
    fixture
        .http
        .script("/weather", [Reply::json(r#"{"sky":"Z\u00fcrich is sunny","odd":"\u0000\ud800","huge":1e400000}"#)]);
    fixture.http.script("/book", [Reply::status(409).body("sold out")]);
    let paris =
        fixture.ended("weather", &[r#"{"city": "Paris", "of": [{"days": 3}]}"#, "--conversation", "trip"]).await;
    let rome = fixture.ended("weather", &[r#"{"city": "Rome", "of": [{"days": 3.0}]}"#]).await;
    let book = fixture.ended("book", &[r#"{"city": "Paris"}"#, "--conversation", "trip"]).await;
    let worker = fixture.json(&["workers"]).await[0]["id"].as_str().unwrap().to_owned();

    let questions: [(&[&str], &[&str]); 13] = [
        (&["--argument", "/city=Paris"], &[&book, &paris]),
        (&["--argument", "/city=Paris", "--tool", "weather"], &[&paris]),
        (&["--argument", "/of/0/days=3"], &[&rome, &paris]),
        (&["--argument", "/of/0/days=3", "--argument", "/city=Rome"], &[&rome]),
        (&["--argument", "/city=Berlin"], &[]),
        (&["--output", "/sky=Zürich is sunny"], &[&rome, &paris]),
        (&["--output", "/huge=1e400000", "--limit", "1"], &[&rome]),
        (&["--contains", "Zürich"], &[&rome, &paris]),
        (&["--contains", "Par"], &[&book, &paris]),
        (&["--worker", &worker], &[&book, &rome, &paris]),
        (&["--worker", &worker, "--class", "business_rule"], &[&book]),
        (&["--worker", "nobody"], &[]),
        (&["--until", "1h"], &[]),
    ];
    for (question, wanted) in questions {
        assert_eq!(fixture.calls(question).await, wanted, "{question:?}");
    }
    let searched = fixture.run(&["history", "--argument", "/city=Rome"]).await;
    assert!(searched.out.contains(&rome[..13]), "{searched:?}");
    assert_in_order(&searched.err, &["looked at all 3 calls, back to 20", "; matches: 1\n"]);
    let limited = fixture.run(&["history", "--argument", "/city=Paris", "--limit", "1"]).await;
    // What is behind the last one that is printed does not count as looked at: the next page begins there.
    assert_in_order(
        &limited.err,
        &["looked at 1 call, back to 20", "; matches: 1\nto go on: --before ", &book, ", or raise"],
    );
    assert!(limited.err.lines().all(|line| line.len() <= 80), "{limited:?}");
    let submitted_at =
        fixture.json(&["history", "--limit", "1"]).await[0]["submitted_at"].as_str().unwrap()[..19].to_owned();
    assert_in_order(&limited.err, &[&submitted_at.replace('T', " ")]);
    more_of_a_worker(&fixture, &worker, &book, &paris).await;
    let model = fixture.run(&["history", "--model", "qwen"]).await;
    assert_eq!((model.code, model.err.as_str()), (0, "no call on record matches\n"));

    wrong_questions(&fixture).await;
    exports(&fixture, &paris, &book).await;
}

/// Of the calls that a worker ran, the next one that matches may come behind others.
async fn more_of_a_worker(fixture: &Fixture, worker: &str, book: &str, paris: &str) {
    let question = ["history", "--worker", worker, "--conversation", "trip", "--limit", "1"];
    let first = fixture.run(&question).await;
    assert_eq!(first.err, format!("there are more: --before {book}, or raise --limit\n"));
    let second = fixture.run(&[&question[..], &["--before", book]].concat()).await;
    assert!(second.out.contains(&paris[..13]) && second.err.is_empty(), "{second:?}");
}

async fn wrong_questions(fixture: &Fixture) {
    let wrong: [(&[&str], &str); 5] = [
        (
            &["--argument", "city=Paris"],
            "the pointer does not begin with /; allowed: POINTER=VALUE, such as /city=Paris",
        ),
        (&["--argument", "/city"], "no = is in it; allowed: POINTER=VALUE"),
        (&["--csv", "--json"], "allowed: one of them"),
        (&["--model", "qwen", "--tool", "book"], "cannot be used with"),
        (&["--before", "yesterday"], "this is no id\nallowed: an id such as "),
    ];
    for (question, told) in wrong {
        let done = fixture.run(&[&["history"], question].concat()).await;
        assert!(done.code == 2 && done.err.contains(told), "{question:?}: {done:?}");
    }
}

async fn exports(fixture: &Fixture, paris: &str, book: &str) {
    let lines = fixture.json(&["history", "--tool", "book"]).await;
    assert_eq!(
        (&lines[0]["arguments"], &lines[0]["attempts_made"][0]["class"]),
        (&json!({"city": "Paris"}), &json!("business_rule"))
    );
    let raw = fixture.out(&["history", "--json", "--argument", "/city=Paris", "--tool", "weather"]).await;
    assert_in_order(&raw, &[paris, r#""output":{"sky":"#, "1e400000"]);

    let csv = fixture.out(&["history", "--csv"]).await;
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[0].starts_with("call,tool,state,class,message,attempts,submitted_at,"), "{csv}");
    assert!(rows[1].starts_with(&format!("{book},book,failed,business_rule,")), "{csv}");
    assert!(rows[3].starts_with(paris) && rows[3].contains(r#""{""city"": ""Paris"", ""of"""#), "{csv}");
    let none = fixture.run(&["history", "--csv", "--tool", "nothing"]).await;
    assert_eq!((none.code, none.out.lines().count(), none.err.as_str()), (0, 1, "no call on record matches\n"));
}

/// So many calls of an hour ago and before, one a second, the newest with the greatest `n`; `n` ms each.
async fn fill(fixture: &Fixture, calls: i32) -> sqlx::PgPool {
    let db = sqlx::PgPool::connect(&fixture.database_url).await.unwrap();
    sqlx::query(
        "INSERT INTO calls (id, state, attempt, tool, pool, effect, tenant, arguments, timeout_ms, notify, submitted_at,
                            deadline_at, published_at, finished_at)
         SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid,
                'succeeded', 1, 'old', 'default', 'read', 'default', json_build_object('n', n), 1000, false, at, at, at,
                at + n * interval '1 ms'
         FROM (SELECT n, now() - interval '1 hour' - ($1 - n) * interval '1 s' AS at FROM generate_series(1, $1) AS n) m",
    )
    .bind(calls)
    .execute(&db)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, output)
         SELECT id, 1, 'w', submitted_at, finished_at, '1' FROM calls WHERE tool = 'old'",
    )
    .execute(&db)
    .await
    .unwrap();
    sqlx::query("ANALYZE").execute(&db).await.unwrap();
    db
}

#[tokio::test]
async fn a_search_says_how_far_it_looked_and_goes_on() {
    const CALLS: i32 = 100_500;
    let fixture = Fixture::start(&[("book", "read")]).await;
    let db = fill(&fixture, CALLS).await;
    let n =
        |lines: &[Value]| -> Vec<i64> { lines.iter().map(|line| line["arguments"]["n"].as_i64().unwrap()).collect() };

    let first = fixture.run(&["history", "--argument", "/n=7", "--json"]).await;
    assert_eq!((first.code, first.out.as_str()), (0, ""), "{first:?}");
    assert_in_order(&first.err, &["looked at 100,000 calls, back to 20", "; matches: 0\nto go on: --before "]);
    let before = first.err.split("--before ").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(n(&fixture.json(&["history", "--argument", "/n=7", "--before", before]).await), [7]);
    let all = fixture.run(&["history", "--argument", "/n=7", "--all"]).await;
    assert_in_order(&all.err, &["looked at all 100,500 calls, back to 20", "; matches: 1\n"]);

    let slowest = fixture.json(&["history", "--slowest", "--until", "1h", "--limit", "3"]).await;
    assert_eq!(n(&slowest), [100_500, 100_499, 100_498]);
    let older = fixture.run(&["history", "--slowest", "--limit", "3"]).await;
    assert_in_order(
        &older.err,
        &["these are the slowest of 100,000 calls, back to 20", "\nto go on: --before ", ", or --all\n"],
    );
    let of_all = fixture.run(&["history", "--slowest", "--all"]).await;
    assert_eq!(of_all.out.lines().count(), 51, "the slowest of all calls are not all calls");
    assert_in_order(&of_all.err, &["these are the slowest of all 100,500 calls, back to 20"]);
    let of_worker = fixture.json(&["history", "--worker", "w", "--limit", "2500"]).await;
    assert_eq!(n(&of_worker), (0..2500).map(|back| i64::from(CALLS - back)).collect::<Vec<_>>());

    let csv = fixture.out(&["history", "--csv", "--all"]).await;
    assert_eq!(csv.lines().count(), 100_501, "all calls and the head");
    exports_that_end_early(&fixture).await;
    let ambiguous = fixture.run(&["show", "0"]).await;
    assert_eq!(ambiguous.err.lines().count(), 13, "a bounded number of ids is listed: {ambiguous:?}");

    interrupted(&fixture, &db).await;
}

/// An export of many pages whose reader leaves after the first lines, and one for which the disk is too small.
async fn exports_that_end_early(fixture: &Fixture) {
    for form in ["--csv", "--json"] {
        let mut command = fixture.command(&["history", form, "--all"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut read = vec![0; 200_000];
        child.stdout.take().unwrap().read_exact(&mut read).await.unwrap();
        let done = child.wait_with_output().await.unwrap();
        assert_eq!((done.status.code(), done.stderr), (Some(141), Vec::new()), "{form}");

        let path = fixture.file("export", "");
        let mut shell = Command::new("sh");
        // At most 1,000 blocks; the signal for more is ignored, so the write fails.
        shell.args(["-c", r#"trap "" XFSZ; ulimit -f 1000; exec "$@" > "$0""#, &path, env!("CARGO_BIN_EXE_redial")]);
        shell.args(["history", form, "--all", "--database-url", &fixture.database_url]);
        let done = shell.output().await.unwrap();
        let told = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{form}: {told}");
        assert_in_order(&told, &["standard output could not be written: File too large", "incomplete"]);
        assert!(std::fs::metadata(&path).unwrap().len() > 200_000, "it ended in the middle");
    }
}

/// Ctrl-C while a statement waits for a lock.
async fn interrupted(fixture: &Fixture, db: &sqlx::PgPool) {
    let mut lock = db.begin().await.unwrap();
    sqlx::query("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let mut command = fixture.command(&["history", "--contains", "x", "--all"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    until("the search waits", async || {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'attempts'::regclass";
        (sqlx::query_scalar::<_, i64>(waits).fetch_one(db).await.unwrap() > 0).then_some(())
    })
    .await;
    kill_process(pid, Signal::INT).unwrap();
    let done = child.wait_with_output().await.unwrap();
    lock.rollback().await.unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), told.as_str()), (Some(130), "interrupted before a call was looked at\n"));
}

#[tokio::test]
async fn tasks_are_listed_page_by_page() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    let db = sqlx::PgPool::connect(&fixture.database_url).await.unwrap();
    sqlx::query(
        "INSERT INTO tasks (id, tenant, conversation, agent, model, language, spec, input, state, submitted_at, started_at,
                            finished_at, code, message)
         SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid,
                'default', 'c-' || n, 'travel', 'm', 'en', '{}', repeat('Book a flight. ', 9), 'failed', at, at, at,
                'turns_exhausted', 'no turn is left'
         FROM (SELECT n, now() - (150 - n) * interval '1 min' AS at FROM generate_series(1, 150) AS n) m",
    )
    .execute(&db)
    .await
    .unwrap();
    let all = fixture.json(&["tasks", "--limit", "1000"]).await;
    assert_eq!(all.len(), 150);
    let (newest, oldest) = (all[0]["task"].as_str().unwrap(), all[149]["task"].as_str().unwrap());
    assert!(newest > oldest, "newest first");
    let page = fixture.run(&["tasks", "--limit", "120"]).await;
    assert!(page.out.lines().all(|line| line.chars().count() <= 80), "{}", page.out);
    assert_in_order(&page.out, &["task", "submitted", &newest[..13], "failed", "turns_ex", "travel", " ago", "Book"]);
    assert_eq!(page.out.lines().count(), 121);
    let last = page.err.split("--before ").nth(1).unwrap().split(',').next().unwrap();
    let rest = fixture.json(&["tasks", "--before", &last[..20], "--limit", "120"]).await;
    assert_eq!((rest.len(), rest[29]["task"].as_str()), (30, Some(oldest)));
    let old = fixture.json(&["tasks", "--until", "100min", "--limit", "1000"]).await;
    assert!((45..=60).contains(&old.len()), "{}", old.len());
    let wide = fixture.out(&["tasks", "--wide", "--limit", "1"]).await;
    assert_in_order(&wide, &["conversation", newest, "c-150", "20", "no turn is left"]);
    let task = fixture.run(&["redrive", &newest[..20]]).await;
    assert_eq!(task.code, 2, "{task:?}");
    assert_in_order(&task.err, &[newest, "is a task\n", "allowed: a call"]);
}
