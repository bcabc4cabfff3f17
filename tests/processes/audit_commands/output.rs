//! What becomes of output that nobody can read, and how wide it is.

use std::fs::OpenOptions;

use redial_test_stack::Reply;

use super::fixture::{Done, Fixture, ended};

/// Runs a command whose output goes to a full disk.
async fn on_a_full_disk(fixture: &Fixture, arguments: &[&str]) -> Done {
    let mut command = fixture.command(arguments);
    command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap().wait_with_output().await.unwrap();
    Done { code: child.status.code().unwrap(), out: String::new(), err: String::from_utf8(child.stderr).unwrap() }
}

/// Runs a command whose output goes into a pipe that nobody reads any more.
async fn into_a_closed_pipe(fixture: &Fixture, arguments: &[&str]) -> Done {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = fixture.command(arguments);
    command.stdout(writer).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap().wait_with_output().await.unwrap();
    Done { code: child.status.code().unwrap(), out: String::new(), err: String::from_utf8(child.stderr).unwrap() }
}

/// A full disk is an error, and a reader who left is none that is told.
pub(crate) async fn fails_if_nobody_can_read_it(fixture: &Fixture, arguments: &[&str]) {
    let full = on_a_full_disk(fixture, arguments).await;
    let told = full.err.contains("standard output could not be written: No space left");
    assert!(full.code == 1 && told && full.err.contains("output_incomplete"), "{arguments:?}: {full:?}");
    let closed = into_a_closed_pipe(fixture, arguments).await;
    assert_eq!((closed.code, closed.err.as_str()), (141, ""), "{arguments:?}");
}

#[tokio::test]
async fn output_that_cannot_be_written_is_a_failure() {
    let fixture = Fixture::start(&[("book", "read"), ("refused", "read")]).await;
    fixture.http.script("/book", [Reply::json("1")]);
    let call = fixture.ended("book", &[]).await;
    fixture.http.script("/refused", [Reply::status(404)]);
    let failed = fixture.ended("refused", &[]).await;
    let file = fixture.file("calls.jsonl", "{\"tool\":\"book\",\"arguments\":{}}\n");
    let commands: [&[&str]; 12] = [
        &["stats"],
        &["submit", &file],
        &["redrive", &failed, "--dry-run"],
        &["history"],
        &["history", "--csv", "--all"],
        &["show", &call],
        &["tools", "--json"],
        &["health"],
        &["migrate"],
        &["call", "book", "--wait"],
        &["completions", "bash"],
        &["--help"],
    ];
    for arguments in commands {
        fails_if_nobody_can_read_it(&fixture, arguments).await;
    }
    let script = fixture.out(&["completions", "bash"]).await;
    assert!(script.contains("retry_wait") && script.contains("tool_failed"), "the values of options are completed");
}

#[tokio::test]
async fn lists_fit_80_columns() {
    let long = "a_tool_whose_name_is_rather_long_and_longer_than_its_column";
    let fixture = Fixture::start(&[(long, "read"), ("book", "keyed")]).await;
    fixture.http.script(&format!("/{long}"), [Reply::status(409).body("sold out")]);
    fixture.http.script("/book", [Reply::json("1")]);
    let lines = (0..20).map(|n| format!("{{\"tool\":\"{long}\",\"arguments\":{{\"n\":{n}}}}}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    let file = fixture.file("calls.jsonl", &lines);
    fixture.out(&["submit", &file]).await;
    let book = fixture.ended("book", &["--conversation", "trip-9"]).await;
    for command in ["history", "tools", "workers"] {
        let text = fixture.out(&[command]).await;
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80 && !text.contains('\u{1b}'), "{command} has {widest} columns:\n{text}");
    }
    let wide = fixture.out(&["history", "--wide"]).await;
    assert!(wide.contains(&book) && wide.contains(long) && wide.contains("trip-9"), "{wide}");
    // Calls of one request have ids that differ late; each is shown as far as it is unique.
    let text = fixture.out(&["history"]).await;
    let mut shown: Vec<&str> = text.lines().skip(1).map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(shown.len(), 21);
    shown.sort_unstable();
    assert!(shown.windows(2).all(|pair| !pair[1].starts_with(pair[0])), "{shown:#?}");
    let plain = ended(fixture.command(&["history", "--json"])).await;
    assert_eq!(plain.out.lines().count(), 21);
}
