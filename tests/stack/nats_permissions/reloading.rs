//! A changed access file reaches a running server at SIGHUP: connections of others stay.

use redial_test_stack::until;

use super::{ACCESS, ask, dispatcher, server::Server};

/// Carl gets a role and alice loses one; bob is removed and emil is new; the workers get another model worker.
fn changed() -> String {
    let changes = [
        ("alice = { roles = [\"submit\", \"read\"]", "alice = { roles = [\"submit\"]"),
        ("carl = { roles = [\"inline\"]", "carl = { roles = [\"inline\", \"read\"]"),
        ("bob = { roles = [\"operate\", \"admin\"], password = \"$TEST_PASSWORD\" }", ""),
        ("[workers.tools]", "emil = { roles = [\"submit\"], password = \"$TEST_PASSWORD\" }\n[workers.tools]"),
        ("[workers.models]", "[workers.large]\npools = [\"models\"]\npassword = \"$TEST_PASSWORD\"\n[workers.models]"),
    ];
    changes.into_iter().fold(ACCESS.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    })
}

#[tokio::test]
async fn connections_of_others_stay_and_new_rights_apply() {
    let server = Server::start(ACCESS).await;
    let mut dispatcher = dispatcher(&server).await;
    let mut alice = server.connect("acme.alice").await;
    alice.subscribe("redial.events.acme.>").await;
    let (mut carl, mut bob) = (server.connect("acme.carl").await, server.connect("globex.bob").await);
    let mut worker = server.connect("worker.tools").await;
    worker.subscribe("redial.worker.tools.>").await;
    // A request that is not answered yet, and a pull that waits.
    carl.send("redial.api.acme.carl.inline.tasks.submit", "_INBOX_client.acme.carl.early", "", "question").await;
    let early = dispatcher.wait_for("a request", |message| message.subject.starts_with("redial.api.")).await;
    let pull = r#"{"batch": 1, "expires": 25000000000}"#;
    worker.send("$JS.API.CONSUMER.MSG.NEXT.JOBS.default", "_INBOX_worker.tools.pull", "", pull).await;

    server.reload(&changed()).await;

    // Who was removed is disconnected.
    until("bob is disconnected", async || bob.flush().await.is_err().then_some(())).await;
    // Who did not change notices nothing: no subscription, request or pull is lost.
    dispatcher.send(&early.reply, "", "", "late answer").await;
    let answer = carl.wait_for("the answer", |message| message.subject.split('.').next_back() == Some("early")).await;
    assert_eq!(answer.body, "late answer");
    dispatcher.send("redial.worker.tools.tools-1", "", "", "notice").await;
    worker.wait_for("a notice", |message| message.body == "notice").await;
    dispatcher.request("redial.jobs.default.echo", "job").await;
    let job = worker.wait_for("the job", |message| message.body == "job").await;
    assert_eq!(worker.request(&job.reply, "+ACK").await.body, "");
    ask(&mut dispatcher, &mut worker, "_INBOX_worker.tools", "redial.ctl.tools.default+slow.claim").await;
    assert_eq!((&worker.refusals, &dispatcher.refusals), (&vec![], &vec![]));
    // A role that was taken away ends its subscription and its requests at once; the connection and the rest stay.
    dispatcher.send("redial.events.acme.calls.1", "", "", "event").await;
    alice.flush().await.unwrap();
    assert!(alice.received.is_empty(), "{:?}", alice.received);
    assert!(alice.refusals.pop().is_some_and(|refused| refused.contains("Subscription to \"redial.events.acme.>\"")));
    alice.send("redial.api.acme.alice.read.calls.get", "", "", "").await;
    assert!(alice.refusals.pop().is_some_and(|refused| refused.contains("Publish to")));
    ask(&mut dispatcher, &mut alice, "_INBOX_client.acme.alice", "redial.api.acme.alice.submit.calls.submit").await;
    // A new role applies to a connection that is there, also to what a new worker sends.
    carl.subscribe("redial.events.acme.>").await;
    dispatcher.send("redial.events.acme.calls.2", "", "", "event").await;
    carl.wait_for("an event", |message| message.subject == "redial.events.acme.calls.2").await;
    let mut large = server.connect("worker.large").await;
    large.send("redial.events.acme.tasks.1.delta", "", "", "delta").await;
    carl.wait_for("a piece", |message| message.body == "delta").await;
    // What a new account imports is there after a second reload (2.9.10 and 2.15.1), which others do not notice either.
    server.reload(&changed()).await;
    let mut emil = server.connect("globex.emil").await;
    ask(&mut dispatcher, &mut emil, "_INBOX_client.globex.emil", "redial.api.globex.emil.submit.calls.submit").await;
    ask(&mut dispatcher, &mut worker, "_INBOX_worker.tools", "redial.ctl.tools.default+slow.heartbeat").await;
    assert_eq!((&carl.refusals, &emil.refusals), (&vec![], &vec![]));
    assert_eq!((&worker.refusals, &dispatcher.refusals), (&vec![], &vec![]));
}
