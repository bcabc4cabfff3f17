//! nats-server answers to whatever reply subject a message names, with its own rights (`docs/SECURITY.md`). In an account of
//! one's own that leads nowhere; in one account for all it purges and deletes streams.

use redial_test_stack::RawNats;

use super::{ACCESS, dispatcher, server::Server, streams};

/// Reply subjects that mean something to others.
const OTHERS: [&str; 23] = [
    "redial.jobs.x.y",
    "redial.jobs.default.echo",
    "redial.results.other",
    "redial.intake.globex.bob.submit.calls",
    "redial.api.globex.bob.operate.calls.redrive",
    "redial.api.acme.carl.inline.tasks.submit",
    "redial.gateway.acme.carl.inline.tasks.submit",
    "redial.events.globex.calls.1",
    "redial.events.acme.calls.1",
    "redial.worker.models.w",
    "redial.ctl.models.models.claim",
    "redial.dispatchers.tools_changed",
    "$JS.API.STREAM.PURGE.JOBS",
    "$JS.API.STREAM.PURGE.INTAKE",
    "$JS.API.STREAM.PURGE.RESULTS",
    "$JS.API.STREAM.DELETE.JOBS",
    "$JS.API.STREAM.DELETE.INTAKE",
    "$JS.API.CONSUMER.DELETE.JOBS.default",
    "$JS.API.CONSUMER.DELETE.INTAKE.dispatchers",
    "_INBOX_client.globex.bob.1",
    "_INBOX_client.acme.carl.1",
    "_INBOX_worker.models.1",
    "_INBOX_dispatcher.1",
];

/// Makes the server's acknowledgement a request to purge everything.
const REFUSED_PUT: &str = "Nats-Expected-Stream: NONE";
const INTAKE: &str = "redial.intake.acme.alice.submit.calls";

/// Something in each stream that must not be lost.
async fn fill(server: &Server, dispatcher: &mut RawNats) {
    for subject in ["redial.jobs.models.m", "redial.jobs.default.echo"] {
        dispatcher.request(subject, "job").await;
    }
    for (user, subject, stream) in [
        ("acme.carl", "redial.intake.acme.carl.inline.tasks", "INTAKE"),
        ("worker.models", "redial.results.models", "RESULTS"),
    ] {
        assert!(server.connect(user).await.request(subject, "1").await.body.contains(stream));
    }
}

/// Connections that hear what must not reach them.
async fn listeners(server: &Server) -> Vec<RawNats> {
    let mut found = Vec::new();
    for (user, subject) in [
        ("acme.carl", "_INBOX_client.acme.carl.1"),
        ("globex.bob", "_INBOX_client.globex.bob.1"),
        ("worker.models", "redial.worker.models.>"),
    ] {
        let mut client = server.connect(user).await;
        client.subscribe(subject).await;
        found.push(client);
    }
    found
}

#[tokio::test]
async fn no_reply_subject_leads_to_others() {
    let server = Server::start(ACCESS).await;
    let mut dispatcher = dispatcher(&server).await;
    fill(&server, &mut dispatcher).await;
    let mut listeners = listeners(&server).await;
    let (mut alice, mut worker) = (server.connect("acme.alice").await, server.connect("worker.tools").await);
    let before = streams::state(&mut dispatcher).await;
    for reply in OTHERS {
        alice.send(INTAKE, reply, REFUSED_PUT, "{}").await;
        worker.send("redial.results.tools", reply, REFUSED_PUT, "{}").await;
        // Consumers without a job: the answer is empty.
        let pull = "$JS.API.CONSUMER.MSG.NEXT.JOBS.default+2";
        worker.send(pull, reply, "", r#"{"batch": 1, "no_wait": true}"#).await;
        worker.send("$JS.API.INFO", reply, "", "").await;
        worker.send("$JS.API.CONSUMER.INFO.JOBS.default", reply, "", "").await;
    }
    assert_eq!(
        (&alice.refusals, &worker.refusals),
        (&vec![], &vec![]),
        "what is sent is allowed, only its reply is not"
    );
    settle(&mut alice, &mut worker).await;
    let mut after = streams::state(&mut dispatcher).await;
    for own in [format!("INTAKE {INTAKE}"), "RESULTS redial.results.tools".to_owned()] {
        after.remove(&own);
    }
    assert_eq!(after, before);
    deliveries(&server, &mut dispatcher, &mut worker).await;
    for client in listeners.iter_mut().chain([&mut dispatcher]) {
        client.flush().await.unwrap();
        assert!(client.received.is_empty(), "{:?}", client.received);
    }
}

/// The same with the answers to acknowledgements, and with jobs that are delivered.
async fn deliveries(server: &Server, dispatcher: &mut RawNats, worker: &mut RawNats) {
    for reply in OTHERS {
        dispatcher.request("redial.jobs.default+2.echo", "job").await;
        let job = worker.request("$JS.API.CONSUMER.MSG.NEXT.JOBS.default+2", r#"{"batch": 1}"#).await;
        worker.send(&job.reply, reply, "", "+ACK").await;
    }
    let mut before = streams::state(dispatcher).await;
    for reply in OTHERS {
        dispatcher.request("redial.jobs.default+2.echo", "job").await;
        worker.send("$JS.API.CONSUMER.MSG.NEXT.JOBS.default+2", reply, "", r#"{"batch": 1, "no_wait": true}"#).await;
    }
    settle(&mut server.connect("acme.alice").await, worker).await;
    // Jobs that were delivered to nobody are delivered again after their time.
    before.insert("JOBS redial.jobs.default+2.echo".to_owned(), u64::try_from(OTHERS.len()).unwrap());
    let mut after = streams::state(dispatcher).await;
    for own in [format!("INTAKE {INTAKE}"), "RESULTS redial.results.tools".to_owned()] {
        before.remove(&own);
        after.remove(&own);
    }
    assert_eq!(after, before);
}

/// Answers leave a stream and a consumer in order: once the last one is here, the others are where they go.
async fn settle(alice: &mut RawNats, worker: &mut RawNats) {
    alice.request(INTAKE, "{}").await;
    worker.request("redial.results.tools", "{}").await;
    worker.request("$JS.API.CONSUMER.INFO.JOBS.default+2", "").await;
    worker.request("$JS.API.INFO", "").await;
}
