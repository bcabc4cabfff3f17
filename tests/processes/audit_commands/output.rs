//! What becomes of output that nobody can read.

use std::{fs::OpenOptions, process::Stdio};

use redial_test_stack::Reply;

use super::fixture::{Done, Fixture};

/// Runs a command whose output goes there.
async fn into(fixture: &Fixture, arguments: &[&str], out: impl Into<Stdio>) -> Done {
    let mut command = fixture.command(arguments);
    let child = command.stdout(out).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().await.unwrap();
    Done { code: child.status.code().unwrap(), out: String::new(), err: String::from_utf8(child.stderr).unwrap() }
}

/// A full disk is an error, and a reader who left is none that is told.
pub(crate) async fn fails_if_nobody_can_read_it(fixture: &Fixture, arguments: &[&str]) {
    let full = into(fixture, arguments, OpenOptions::new().write(true).open("/dev/full").unwrap()).await;
    let told = full.err.contains("standard output could not be written: No space left");
    assert!(full.code == 1 && told && full.err.contains("output_incomplete"), "{arguments:?}: {full:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = into(fixture, arguments, writer).await;
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
