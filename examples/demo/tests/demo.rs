//! The demo itself, as `./dev demo` runs it. It needs `redial` beside it, as `cargo test --workspace` builds it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use redial_testkit::{Reply, ScriptedHttp};
use rustix::process::{Pid, Signal, kill_process};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn every_scenario_holds() {
    let demo = Command::new(env!("CARGO_BIN_EXE_redial-demo")).current_dir(ROOT).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&demo.stdout), String::from_utf8_lossy(&demo.stderr));
    assert!(demo.status.success(), "{out}{err}");
    assert!(out.contains("7 of 7 hold"), "{out}");
}

/// A new folder, from which the servers' programs are found.
fn folder() -> tempfile::TempDir {
    let above = Path::new(ROOT).join(".redial");
    std::fs::create_dir_all(&above).unwrap();
    tempfile::Builder::new().prefix("demo-test").tempdir_in(above).unwrap()
}

#[test]
fn the_demo_that_stays_fills_the_console_and_ends_when_it_is_told_to() {
    let folder = folder();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_redial-demo"))
        .current_dir(folder.path())
        .arg("--stay")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find(|line| line.starts_with("Look at what happened: http://")).unwrap();
    assert!(address.contains("/console"), "{address}");
    let pid = Pid::from_child(&demo);
    kill_process(pid, Signal::INT).unwrap();
    let rest: Vec<String> = lines.collect();
    let (status, mut told) = (demo.wait().unwrap(), String::new());
    demo.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(status.success() && rest.iter().any(|line| line.contains("7 of 7 hold")), "{rest:?} {told}");
    // What cannot be filled is told, and the demo stays all the same.
    assert!(told.contains("40 tasks of a travel desk") && !told.contains("demo:"), "{told}");
}

/// A chat completion with this text.
fn says(text: &str) -> Reply {
    let message = serde_json::json!({"role": "assistant", "content": text});
    Reply::json(&serde_json::json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

/// A chat completion that calls a tool.
fn calls(tool: &str, arguments: &str) -> Reply {
    let call = serde_json::json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}});
    let message = serde_json::json!({"role": "assistant", "content": null, "tool_calls": [call]});
    Reply::json(&serde_json::json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).to_string())
}

/// Runs the demo with a model that a script plays, in a folder of its own, from which the servers' programs are found.
async fn with_model(replies: Vec<Reply>, seconds: &str) -> Output {
    let model = ScriptedHttp::start().await;
    model.script("/v1/chat/completions", replies);
    let folder = folder();
    let (path, url): (PathBuf, String) = (folder.path().to_owned(), model.url("/v1"));
    let seconds = seconds.to_owned();
    let run = move || {
        let mut demo = Command::new(env!("CARGO_BIN_EXE_redial-demo"));
        demo.current_dir(path)
            .args(["--model-url", &url, "--model", "m", "--scene-seconds", &seconds])
            .output()
            .unwrap()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn texts(demo: &Output) -> (String, String) {
    (String::from_utf8_lossy(&demo.stdout).into_owned(), String::from_utf8_lossy(&demo.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_answers_nonsense_is_told_about() {
    let replies = vec![says("banana"), calls("no_such_tool", "{"), calls("book_flight", "{\"date\": "), says("banana")];
    let demo = with_model(replies, "60").await;
    let (out, err) = texts(&demo);
    assert!(demo.status.success() && out.contains("3 of 3 hold"), "{out}{err}");
    assert!(out.contains("answered \"banana\"") && out.contains("no_such_tool unknown_tool"), "{out}{err}");
    assert!(err.contains("task 1 succeeded"), "progress is told: {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_hangs_ends_the_demo_with_its_reason() {
    let demo = with_model(vec![says("late").after(std::time::Duration::from_hours(1))], "6").await;
    let (out, err) = texts(&demo);
    assert_eq!(demo.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("0 of 3 hold") && out.contains("the model answered nothing"), "{out}{err}");
    assert!(err.contains("6 s are over: cancelling"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_model_that_never_ends_is_stopped_and_told_about() {
    let slow = calls("weekday", "{\"date\": \"2026-12-24\"}").after(std::time::Duration::from_secs(1));
    let demo = with_model(vec![slow], "8").await;
    let (out, err) = texts(&demo);
    assert!(demo.status.success() && out.contains("3 of 3 hold"), "{out}{err}");
    assert!(out.contains("turns: called") && out.contains(" of 4 tasks have an answer"), "{out}{err}");
}
