//! What a message costs that the NATS client does not survive; and how a dispatcher ends.

use std::{io::Write as _, path::Path, time::Duration};

use redial_proto::{
    CallState, WorkerId,
    subjects::{self, Intake, Verb},
};
use redial_test_stack::{Paused, Process, Servers, Stack};

use redial_tools::Tool;

use super::secrets::is_root;

/// A carriage return in a header's value, which nats-server accepts and the client library does not survive.
const MALFORMED: (&str, &str) = ("traceparent", "a\rb");

fn dispatcher(stack: &Stack) -> Process {
    stack.process(env!("CARGO_BIN_EXE_redial"), "dispatcher", &[])
}

const FAILED: &str = "The NATS client failed, as it does at a message with a malformed header; connecting again";

#[tokio::test]
async fn a_worker_goes_on_after_a_message_that_its_nats_client_does_not_survive() {
    let stack = Stack::start().await;
    let worker = stack.process(env!("CARGO_BIN_EXE_redial"), "worker", &[]);
    worker.line("Worker started").await;
    let id: String = stack.value("SELECT id FROM workers").await;
    let subject = subjects::worker(&id.parse::<WorkerId>().unwrap());
    stack.raw_nats().await.publish_with(&subject, MALFORMED, b"{}").await;
    worker.line(FAILED).await;
    let call = stack.call("echo", serde_json::json!({"say": "hello"})).await;
    stack.ended(call).await;
    worker.terminate();
    assert!(worker.ended().await.success(), "{}", worker.output());
    stack.finish().await;
}

/// They end a connection of the dispatcher again and again, but not the one on which gateways' requests arrive, nor that of workers.
#[tokio::test]
async fn malformed_headers_of_users_disturb_no_gateway_and_no_worker() {
    let mut stack = Stack::on(Servers::start().await).await;
    let process = dispatcher(&stack);
    process.line("Dispatcher started").await;
    stack.work(vec![Tool::echo()]).await;
    let gateway = stack.serve_http().await;
    let (client, url) = (redial_http::direct().build().unwrap(), format!("{}/v1/calls", gateway.url));
    let (mut nats, subject) = (stack.raw_nats().await, stack.subject(Verb::CallGet));
    let attack = async {
        loop {
            nats.publish_with(&subject, MALFORMED, b"{}").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let requests = async {
        for n in 0..100 {
            let body = serde_json::json!({"tool": "echo", "arguments": {"n": n}}).to_string();
            let request =
                client.post(&url).header("prefer", "wait=20").header("content-type", "application/json").body(body);
            let answer = request.send().await.unwrap().text().await.unwrap();
            assert!(answer.contains(r#""state":"succeeded""#) && answer.contains(r#""attempt":1"#), "{n}: {answer}");
        }
        assert!(process.output().contains(FAILED), "the attack fails a connection");
    };
    tokio::select! {
        () = attack => unreachable!(),
        () = requests => {}
    }
    stack.finish().await;
}

#[tokio::test]
async fn messages_with_malformed_headers_become_dead_letters_and_are_not_delivered_again() {
    let stack = Stack::on(Servers::start().await).await;
    let mut nats = stack.raw_nats().await;
    let process = dispatcher(&stack);
    process.line("Dispatcher started").await;
    // This costs only the connection.
    nats.publish_with(&stack.intake(Intake::Calls), ("n\u{e4}me", "a"), b"1").await;
    process.line("Reconnected to NATS").await;
    process.line("Keeping a message as a dead letter because of its malformed headers").await;
    nats.publish_with(&stack.intake(Intake::Calls), MALFORMED, b"2").await;
    process.line(FAILED).await;
    stack.wait_until_empty().await;
    let letters = "SELECT tenant, code, payload FROM dead_letters ORDER BY id";
    let letters: Vec<(String, String, Vec<u8>)> = stack.rows(letters).await;
    let letter = |payload: &[u8]| ("default".to_owned(), "invalid_message".to_owned(), payload.to_vec());
    assert_eq!(letters, [letter(b"1"), letter(b"2")], "{}", process.output());
    process.terminate();
    assert!(process.ended().await.success(), "{}", process.output());
    stack.finish().await;
}

/// nats-server loses what it has not read of a connection that the other side closes, so what was only written to the socket
/// may be lost.
#[tokio::test]
async fn a_dispatcher_waits_until_nats_has_read_its_acknowledgements() {
    let stack = Stack::on(Servers::start().await).await;
    let leaving = dispatcher(&stack);
    leaving.line("Dispatcher started").await;
    let paused = Paused::new(stack.servers.nats_pid());
    leaving.terminate();
    leaving.line("messages whose acknowledgements it lost will be delivered again").await;
    assert!(leaving.ended().await.success(), "{}", leaving.output());
    drop(paused);
    stack.finish().await;
}

/// A tool whose program runs for longer than a test.
const SLOW: &str =
    "[[tool]]\nname = \"slow\"\neffect = \"read\"\ntimeout = \"10m\"\n[tool.command]\nargv = [\"sleep\", \"100\"]\n";

/// Whoever supervises a process sends no Ctrl-C.
#[tokio::test]
async fn a_second_sigterm_ends_the_grace_of_a_worker() {
    let mut stack = Stack::start().await;
    let manifest = redial_test_stack::file("tools", SLOW);
    let mut arguments = vec!["--drain-grace", "10m", "--tools", manifest.to_str().unwrap()];
    if is_root() {
        arguments.extend(["--command-user", "nobody"]);
    }
    let worker = stack.process(env!("CARGO_BIN_EXE_redial"), "worker", &arguments);
    worker.line("Worker started").await;
    let call = stack.call("slow", serde_json::json!({})).await;
    stack.is(call, CallState::Running).await;
    worker.terminate();
    worker.line("Started draining").await;
    worker.terminate();
    assert!(worker.ended().await.success(), "{}", worker.output());
    let view = stack.get(call).await;
    assert_eq!((view.state, view.attempts), (CallState::Ready, 0), "it was given back");
    stack.cancel(call).await;
    stack.leaves_jobs();
    stack.finish().await;
}

/// As in a container whose image has no init.
#[tokio::test]
async fn a_worker_of_programs_that_is_process_1_says_that_an_init_is_needed() {
    let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let allowed = std::process::Command::new("unshare").args(namespace).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        // Bypasses the capture of the test's output.
        let _ = std::io::stderr().write_all(b"NOT RUN: a namespace of processes, which needs root\n");
        return;
    }
    let stack = Stack::start().await;
    let manifest = redial_test_stack::file("tools", SLOW);
    let start = |namespace: &[&str]| {
        Process::start(Path::new("unshare"), |command| {
            command.args(namespace).arg(env!("CARGO_BIN_EXE_redial"));
            command.args(["worker", "--command-user", "nobody", "--tools"]).arg(&manifest);
            command.env("REDIAL_NATS_URL", stack.servers.nats_url());
        })
    };
    let (first, other) = (start(&namespace), start(&[]));
    first.line("Found no init").await;
    other.line("Worker started").await;
    other.terminate();
    other.line("Drained").await;
    assert!(!other.output().contains("Found no init"), "{}", other.output());
    // `unshare` ignores SIGTERM.
    first.kill().await;
    stack.finish().await;
}
