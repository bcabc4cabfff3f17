//! A process that only a restart can repair ends, so that a supervisor starts it again.

use redial_proto::{
    Tenant, User, UserRole, WorkerId,
    subjects::{self, Intake, Verb},
};
use redial_test_stack::{Process, Servers, Stack};

/// A carriage return in a header's value, which nats-server accepts and the client library does not survive.
const MALFORMED: (&str, &str) = ("traceparent", "a\rb");

#[tokio::test]
async fn a_role_whose_nats_client_failed_ends_with_an_error() {
    let stack = Stack::on(Servers::start().await).await;
    let role = |name: &str, more: &[&str]| {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args([name, "--nats-url", stack.servers.nats_url()]).args(more);
        })
    };
    let dispatcher = role("dispatcher", &["--database-url", stack.servers.database_url()]);
    dispatcher.line("Dispatcher started").await;
    let worker = role("worker", &[]);
    worker.line("Worker started").await;
    let id: String = sqlx::query_scalar("SELECT id FROM workers").fetch_one(stack.db()).await.unwrap();
    let submit = subjects::api(&Tenant::default(), &User::default(), UserRole::Submit, Verb::CallSubmit);
    let of_worker = subjects::worker(&id.parse::<WorkerId>().unwrap());
    for (process, subject) in [(worker, of_worker.as_str()), (dispatcher, submit.as_str())] {
        stack.raw_nats().await.publish_with(subject, MALFORMED, b"{}").await;
        assert_eq!(process.ended().await.code(), Some(1), "{}", process.output());
        process.line("The NATS client failed and cannot connect again; stopping").await;
        process.line("error: the NATS client failed and cannot connect again [unavailable]").await;
    }
    stack.finish().await;
}

#[tokio::test]
async fn messages_with_malformed_headers_become_dead_letters_and_are_not_delivered_again() {
    let stack = Stack::on(Servers::start().await).await;
    let dispatcher = || {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(["dispatcher", "--nats-url", stack.servers.nats_url()]);
            command.args(["--database-url", stack.servers.database_url()]);
        })
    };
    let kept = "Keeping a message as a dead letter because of its malformed headers";
    let mut nats = stack.raw_nats().await;
    let first = dispatcher();
    first.line("Dispatcher started").await;
    // This costs only the connection.
    nats.publish_with(&stack.intake(Intake::Calls), ("n\u{e4}me", "a"), b"1").await;
    first.line("Reconnected to NATS").await;
    first.line(kept).await;
    nats.publish_with(&stack.intake(Intake::Calls), MALFORMED, b"2").await;
    assert_eq!(first.ended().await.code(), Some(1), "{}", first.output());

    let next = dispatcher();
    next.line(kept).await;
    next.line("Dispatcher started").await;
    let letters = sqlx::query_as("SELECT tenant, code, payload FROM dead_letters ORDER BY id").fetch_all(stack.db());
    let letters: Vec<(String, String, Vec<u8>)> = letters.await.unwrap();
    let letter = |payload: &[u8]| ("default".to_owned(), "invalid_message".to_owned(), payload.to_vec());
    assert_eq!(letters, [letter(b"1"), letter(b"2")], "{}\n{}", first.output(), next.output());
    stack.wait_until_empty().await;
    next.terminate();
    assert!(next.ended().await.success(), "{}", next.output());
    stack.finish().await;
}
