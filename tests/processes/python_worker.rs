//! The worker of the Python package `clients/python`, which uses only Redial's wire contract, against real servers and a real
//! dispatcher. It runs the tools of `clients/python/tests/worker_of_tests.py`; the tests simulate what they connect to.

mod leases;
pub(crate) mod python;
mod stopping;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use redial_proto::{
    CONTRACT, CallId, CallState, ErrorClass, FieldError, RetryOverride, Submission, SubmitResult,
    subjects::{self, Verb},
};
use redial_test_stack::{Process, Stack, arguments, unique_path, until};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};

const TOOLS: [&str; 3] = ["count_nights", "read_greeting", "tell"];

/// Starts the worker on the servers of a stack.
async fn start_worker(stack: &Stack, python: &Path, grace: Duration, notes: &PathBuf) -> Process {
    let worker = Process::start(python, |command| {
        python::set_up(command);
        command.arg(python::package().join("tests/worker_of_tests.py"));
        command.env("REDIAL_NATS_URL", stack.servers.nats_url()).env("NOTES", notes);
        command.env("GRACE", grace.as_secs_f64().to_string());
    });
    worker.line("Worker started").await;
    stack.offered(&TOOLS).await;
    worker
}

/// A stack with one Python worker with a long grace.
async fn with_worker(python: &Path) -> (Stack, Process) {
    beside_worker(Stack::start().await, python).await
}

async fn beside_worker(stack: Stack, python: &Path) -> (Stack, Process) {
    let worker = start_worker(&stack, python, Duration::from_mins(1), &unique_path("notes")).await;
    (stack, worker)
}

/// Stops an idle worker and finishes the stack.
async fn finish(stack: Stack, worker: Process) -> redial_test_stack::Evidence {
    stack.wait_until_empty().await;
    worker.terminate();
    assert!(worker.ended().await.success(), "{}", worker.output());
    stack.finish().await
}

/// A server whose greeting the test sends.
async fn server() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn greet(mut connection: TcpStream) {
    connection.write_all(b"220 hello\r\n").await.unwrap();
}

fn read_greeting(port: u16) -> Submission {
    Submission::new("read_greeting", arguments(json!({"host": "127.0.0.1", "port": port})))
}

async fn field_errors(stack: &Stack, call: CallId) -> Vec<FieldError> {
    let details = stack.value(&format!("SELECT details FROM attempts WHERE call_id = '{call}'")).await;
    serde_json::from_value(details).unwrap()
}

/// What a command printed; panics if it failed.
fn run(python: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new(python);
    command.args(arguments);
    python::set_up(&mut command);
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn the_packages_own_tests_pass() {
    let Some(python) = python::find() else { return };
    let said = run(&python, &["-m", "unittest", "discover", "-s", "tests"]);
    assert!(!said.contains("Ran 0 tests"), "{said}");
}

#[test]
fn the_package_is_typed() {
    let Some(python) = python::find() else { return };
    let cache = unique_path("mypy").display().to_string();
    run(&python, &["-m", "mypy", "--cache-dir", &cache]);
}

#[tokio::test]
async fn calls_run_and_their_results_are_recorded() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = with_worker(&python).await;
    let nights = |n: u32| json!({"first": "2030-02-01", "last": format!("2030-02-{:02}", 1 + n % 28)});
    let calls: Vec<_> = (0..50).map(|n| Submission::new("count_nights", arguments(nights(n)))).collect();
    for (n, call) in stack.call_all(&calls).await.into_iter().enumerate() {
        assert_eq!(stack.output(call).await, format!("{{\"nights\":{}}}", n % 28 + 1));
    }
    let note = Submission { key: Some("once".to_owned()), ..note("你好") };
    let call = stack.accepted(&note).await;
    assert_eq!(stack.output(call).await, r#"{"notes":1}"#);
    let acme = stack.user("acme", "alice").await;
    let result: SubmitResult = acme.ask(Verb::CallSubmit, &note, Duration::from_secs(25)).await.unwrap();
    let of_acme = result.call.unwrap();
    stack.wait_for_end(of_acme).await;
    let output: Value = stack.value(&format!("SELECT output FROM attempts WHERE call_id = '{of_acme}'")).await;
    assert_eq!(output, json!({"notes": 1}), "it does not see the notes of others");
    let evidence = finish(stack, worker).await;
    assert_eq!(evidence.attempts().count(), 52, "nothing was run twice");
}

/// Its pool has two slots, and a pack has four jobs.
#[tokio::test]
async fn what_a_pack_has_beyond_the_free_slots_is_given_back_and_runs_once() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = with_worker(&python).await;
    let (listener, port) = server().await;
    let greeter = tokio::spawn(async move {
        loop {
            tokio::spawn(greet(listener.accept().await.unwrap().0));
        }
    });
    let calls: Vec<_> = (0..24).map(|_| Submission::new("take_a_slot", arguments(json!({"port": port})))).collect();
    for call in stack.call_all(&calls).await {
        assert!(["1", "2"].contains(&stack.output(call).await.as_str()));
    }
    greeter.abort();
    let evidence = finish(stack, worker).await;
    assert_eq!(evidence.attempts().count(), 24, "nothing was run twice");
}

#[tokio::test]
async fn a_job_of_a_newer_version_is_left_to_it_and_the_worker_says_its_own() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = with_worker(&python).await;
    let (mut nats, subject) = (stack.raw_nats().await, subjects::job("default", "count_nights"));
    let newer = (subjects::CONTRACT, (CONTRACT + 1).to_string());
    nats.publish_with(&subject, (newer.0, &newer.1), br#"{"batch_of_the_next_version": []}"#).await;
    nats.publish(&subject, br#"{"no": "job"}"#).await;
    let nights = arguments(json!({"first": "2030-02-01", "last": "2030-02-02"}));
    let call = stack.accepted(&Submission::new("count_nights", nights)).await;
    assert_eq!(stack.output(call).await, r#"{"nights":2}"#);
    until("only what cannot be read is left", async || (nats.messages("JOBS").await == 1).then_some(())).await;
    worker.line("Set aside a job of a newer version").await;
    nats.jetstream("STREAM.PURGE.JOBS", &json!({})).await;
    finish(stack, worker).await;
}

fn note(text: &str) -> Submission {
    Submission::new("add_note", arguments(json!({"note": text})))
}

#[tokio::test]
async fn every_error_is_handled_by_its_class() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = with_worker(&python).await;

    // The caller gets all field errors of the tool at once.
    let mixed_up = json!({"first": "1999-12-31", "last": "1999-12-24"});
    let call = stack.call("count_nights", mixed_up).await;
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(ErrorClass::InvalidArguments), 1));
    assert!(view.message.unwrap().contains("/last: '1999-12-24' was sent; allowed: 1999-12-31 or later"));
    let broken = field_errors(&stack, call).await;
    let rules: Vec<_> = broken.iter().map(|one| (one.path.as_str(), one.rule.as_str())).collect();
    assert_eq!(rules, [("/last", "order"), ("/first", "minimum")]);
    assert_eq!(
        (&broken[0].sent, broken[0].hint.as_deref()),
        (&Some(json!("1999-12-24")), Some("the two dates may be swapped"))
    );

    // A refused connection is retried until a server listens.
    let (listener, port) = server().await;
    drop(listener);
    let call = stack.accepted(&read_greeting(port)).await;
    stack.is(call, CallState::RetryWait).await;
    assert_eq!(stack.get(call).await.class, Some(ErrorClass::Unavailable));
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    greet(listener.accept().await.unwrap().0).await;
    let output: Value = serde_json::from_str(&stack.output(call).await).unwrap();
    assert_eq!(output["greeting"], "220 hello");
    assert!(output["attempt"].as_u64() > Some(1), "{output}");

    // A silent server: the attempt ends at its deadline.
    let retry = Some(RetryOverride { max_attempts: Some(1), ..RetryOverride::default() });
    let call = stack.accepted(&Submission { timeout_ms: Some(300), retry, ..read_greeting(port) }).await;
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class), (CallState::Failed, Some(ErrorClass::Timeout)));

    // Nothing secret leaves the worker.
    let tell = |what: &str| Submission { retry, ..Submission::new("tell", arguments(json!({"what": what}))) };
    let output = stack.output(stack.accepted(&tell("secret")).await).await;
    assert_eq!(output, r#"{"key":"[secret]","of":["[secret]!"]}"#);
    for (what, class, message) in [
        ("exit", ErrorClass::ToolFailed, "the tool raised SystemExit"),
        ("down", ErrorClass::Unavailable, "[secret]: [host] is down"),
        ("large", ErrorClass::OutputTooLarge, "the result has 16777218 bytes; allowed: 16777216"),
    ] {
        let view = stack.ended(stack.accepted(&tell(what)).await).await;
        assert_eq!((view.class, view.message.unwrap().starts_with(message)), (Some(class), true), "{what}");
    }
    finish(stack, worker).await;
}

#[tokio::test]
async fn large_arguments_and_results_travel_in_pieces() {
    let Some(python) = python::find() else { return };
    let (stack, worker) = with_worker(&python).await;
    let text = format!("echo {}", "好\"\\x".repeat(400_000));
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(stack.call("tell", json!({"what": text})).await);
    }
    for call in calls {
        assert_eq!(stack.output(call).await, json!(text).to_string());
    }
    finish(stack, worker).await;
}
