//! `redial submit` tells what became of the lines of its file, also if answers were lost and it sent them again.

use std::{fmt::Write as _, process::Stdio};

use redial_test_stack::{Reply, until};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Child,
};

use super::fixture::Fixture;

/// So many requests are under way at once, so `redial submit` sends none before it has read so many lines.
const FIRST: i64 = 8;

#[tokio::test]
async fn a_file_is_counted_once_however_often_it_was_sent() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    fixture.http.script("/book", [Reply::json("1")]);
    let mut first = String::new();
    (0..FIRST).for_each(|n| writeln!(first, r#"{{"tool":"book","arguments":{{"n":{n}}}}}"#).unwrap());
    let rest = r#"{"tool":"book","arguments":{"n":10}}
{"tool":"book","arguments":{"n":11}}
{"tool":"book","arguments":{"n":12},"key":"twice"}
{"tool":"book","arguments":{"n":12},"key":"twice"}
{"tool":"nobody","arguments":{}}
{"tool":"nobody","arguments":{},"key":"refused"}
{"tool":"book","arguments":
"#;
    let db = sqlx::PgPool::connect(&fixture.database_url).await.unwrap();
    let mut submit = fixture.command(&["submit", "-", "--name", "orders", "--batch", "1"]);
    submit.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut submit = submit.spawn().unwrap();
    let mut input = submit.stdin.take().unwrap();
    input.write_all(first.as_bytes()).await.unwrap();
    until("the first lines are on record", async || (rows(&db).await.0 == FIRST).then_some(())).await;
    // What is sent now waits for the dispatcher, which answers when nobody listens any more.
    fixture.dev.pause();
    input.write_all(rest.as_bytes()).await.unwrap();
    drop(input);
    told(&mut submit, "no answer within 10 s").await;
    fixture.dev.resume();
    let done = submit.wait_with_output().await.unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    assert_eq!(out, "11 accepted, 1 already on record, 2 refused (on record, never run), 1 rejected\n");
    assert_eq!((done.status.code(), rows(&db).await), (Some(1), (11, 2)));

    // The same lines again, as one request.
    let file = fixture.file("orders.jsonl", &(first + rest));
    let again = fixture.run(&["submit", &file, "--name", "orders"]).await;
    assert_eq!(again.out, "0 accepted, 12 already on record, 2 refused (on record, never run), 1 rejected\n");
    assert_eq!((again.code, rows(&db).await), (1, (11, 2)));
}

/// Calls on record that were accepted, and those that were refused.
async fn rows(db: &sqlx::PgPool) -> (i64, i64) {
    let count =
        "SELECT count(*) FILTER (WHERE state <> 'refused'), count(*) FILTER (WHERE state = 'refused') FROM calls";
    sqlx::query_as(count).fetch_one(db).await.unwrap()
}

/// Waits until a command says this on standard error; what it has said.
pub(crate) async fn told(child: &mut Child, text: &str) -> String {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        seen += &line;
        if line.contains(text) {
            // The rest is read, so that the command can write it.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return seen;
        }
    }
    panic!("no {text:?} in {seen}");
}
