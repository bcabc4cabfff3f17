//! `deploy/nats.conf` on a real nats-server: a call works with the permissions of each role, and the server refuses
//! everything else.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "nats_permissions/server.rs"]
mod server;

use std::time::Duration;

use redial_proto::{CallId, Delta, Job, TaskId, WorkerId, subjects};
use redial_queue::{OutgoingJob, Queue, QueueError};
use serde_json::{Value, json};
use server::Server;
use tokio::time::timeout;

const ANSWER: Duration = Duration::from_secs(25);

/// A dispatcher that answers every request with `null`.
async fn answering(dispatcher: &Queue) {
    for subject in ["redial.api.>", "redial.ctl.>"] {
        let mut requests = dispatcher.serve(subject, Some(subjects::DISPATCHERS)).await.unwrap();
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                request.reply(&()).await;
            }
        });
    }
    dispatcher.health().await.unwrap();
}

async fn ask(queue: &Queue, subject: &str) {
    let answer: Value = queue.request(subject, &json!({}), ANSWER).await.unwrap();
    assert_eq!(answer, Value::Null, "{subject}");
}

/// A dispatcher's connection, with all streams and consumers.
async fn dispatcher(server: &Server) -> Queue {
    let dispatcher = server.connect("dispatcher").await;
    dispatcher.ensure_streams().await.unwrap();
    dispatcher.ensure_jobs("default").await.unwrap();
    answering(&dispatcher).await;
    dispatcher
}

#[tokio::test]
async fn a_call_works_with_the_permissions_of_each_role() {
    let server = Server::start().await;
    let dispatcher = dispatcher(&server).await;
    let (worker, client) = tokio::join!(server.connect("worker"), server.connect("client"));

    submit(&dispatcher, &client).await;
    pull_and_claim(&dispatcher, &worker).await;
    report(&dispatcher, &worker).await;
    watch(&dispatcher, &worker, &client).await;
    receive_the_end(&dispatcher, &client).await;

    for (role, queue) in [("dispatcher", &dispatcher), ("worker", &worker), ("client", &client)] {
        assert_eq!(server.refusals_before(role, queue).await, 0, "{role}");
    }
}

async fn submit(dispatcher: &Queue, client: &Queue) {
    for subject in [subjects::SUBMIT, subjects::GET, subjects::CANCEL, subjects::REDRIVE] {
        ask(client, subject).await;
    }
    for subject in [subjects::TASK_SUBMIT, subjects::TASK_GET, subjects::TASK_CANCEL] {
        ask(client, subject).await;
    }
    let mut intake = dispatcher.intake();
    for subject in [subjects::INTAKE, subjects::TASK_INTAKE] {
        client.put(subject, &json!({})).await.unwrap();
        let submissions = timeout(ANSWER, intake.next(10)).await.unwrap();
        assert_eq!((submissions.len(), submissions[0].subject()), (1, subject));
        assert_eq!(dispatcher.unreadable(subjects::INTAKE_STREAM).await.unwrap().len(), 0);
        submissions[0].ack().await;
    }
}

async fn watch(dispatcher: &Queue, worker: &Queue, client: &Queue) {
    let task = TaskId::generate();
    let (notices, deltas) = (subjects::task_events(task), subjects::task_deltas(task));
    let mut heard = Vec::new();
    for subject in [&notices, &deltas] {
        heard.push(client.subscribe(subject).await.unwrap());
    }
    ask(client, subjects::TASK_GET).await;
    dispatcher.publish(&notices, &json!({})).await.unwrap();
    worker.publish(&deltas, &Delta::default()).await.unwrap();
    for subscription in &mut heard {
        assert!(timeout(ANSWER, subscription.next()).await.unwrap().is_some());
    }
}

async fn pull_and_claim(dispatcher: &Queue, worker: &Queue) {
    ask(worker, subjects::REGISTER).await;
    let job = Job { call: CallId::generate(), attempt: 1, tool: "echo".to_owned(), bytes: 2 };
    let outgoing = OutgoingJob { job, consumer: "default".to_owned(), publish_no: 1, traceparent: None };
    dispatcher.publish_jobs(&[outgoing]).await.remove(0).unwrap();
    let jobs = worker.jobs("default").unwrap().pull(5, ANSWER).await.unwrap();
    assert_eq!(jobs.len(), 1);
    for subject in [subjects::CLAIM, subjects::HEARTBEAT, subjects::RELEASE] {
        ask(worker, subject).await;
    }
    jobs[0].ack().await;
    worker.health().await.unwrap();
    timeout(ANSWER, acked(dispatcher)).await.expect("the acknowledgement reaches the server");
}

/// Waits until the server has processed the acknowledgement.
async fn acked(dispatcher: &Queue) {
    while dispatcher.jobs_depth("default").await.unwrap().unacked > 0 {
        tokio::task::yield_now().await;
    }
}

async fn report(dispatcher: &Queue, worker: &Queue) {
    let subject = subjects::worker(&"w1".parse::<WorkerId>().unwrap());
    let mut notices = worker.subscribe(&subject).await.unwrap();
    worker.put(subjects::RESULTS, &json!({"reports": []})).await.unwrap();
    let reports = timeout(ANSWER, dispatcher.results().next(10)).await.unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!(dispatcher.unreadable(subjects::RESULTS_STREAM).await.unwrap().len(), 0);
    reports[0].ack().await;
    dispatcher.publish(&subject, &json!({"ingested": []})).await.unwrap();
    assert!(timeout(ANSWER, notices.next()).await.unwrap().is_some());
}

async fn receive_the_end(dispatcher: &Queue, client: &Queue) {
    let subject = subjects::call_events(CallId::generate());
    let mut events = client.subscribe(&subject).await.unwrap();
    ask(client, subjects::GET).await;
    dispatcher.publish(&subject, &json!({})).await.unwrap();
    assert!(timeout(ANSWER, events.next()).await.unwrap().is_some());
    dispatcher.publish(subjects::TOOLS_CHANGED, &()).await.unwrap();
}

/// Subjects that a role must not publish to: requests of other roles, and ways to reach into the streams.
const NO_PUBLISH: [(&str, &[&str]); 3] = [
    (
        "worker",
        &[
            "redial.api.calls.submit",
            "redial.api.calls.cancel",
            "redial.api.calls.redrive",
            "redial.intake.calls",
            "redial.api.tasks.submit",
            "redial.api.tasks.cancel",
            "redial.intake.tasks",
            "redial.jobs.default.echo",
            "redial.jobs.models.model-small",
            "redial.worker.w2",
            "redial.events.calls.1",
            "redial.events.tasks.1",
            "redial.events.tasks.1.ended",
            "redial.events.tasks.1.delta.2",
            "redial.ctl.tools_changed",
            "_INBOX_worker.other.1",
            "_INBOX_client.other.1",
            "$JS.API.STREAM.CREATE.JOBS",
            "$JS.API.STREAM.DELETE.JOBS",
            "$JS.API.STREAM.PURGE.JOBS",
            "$JS.API.STREAM.MSG.GET.RESULTS",
            "$JS.API.CONSUMER.DURABLE.CREATE.JOBS.mine",
            "$JS.API.CONSUMER.CREATE.RESULTS.mine",
            "$JS.API.CONSUMER.DELETE.JOBS.default",
            "$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers",
            "$JS.API.CONSUMER.MSG.NEXT.INTAKE.dispatchers",
            "$JS.ACK.RESULTS.dispatchers.1.1.1.1.0",
            "$JS.ACK.INTAKE.dispatchers.1.1.1.1.0",
        ],
    ),
    (
        "client",
        &[
            "redial.ctl.claim",
            "redial.ctl.register",
            "redial.results",
            "redial.jobs.default.echo",
            "redial.worker.w1",
            "redial.events.calls.1",
            "redial.events.tasks.1",
            "redial.events.tasks.1.delta",
            "_INBOX_worker.other.1",
            "$JS.API.STREAM.CREATE.JOBS",
            "$JS.API.STREAM.MSG.GET.INTAKE",
            "$JS.API.CONSUMER.CREATE.INTAKE.mine",
            "$JS.API.CONSUMER.MSG.NEXT.JOBS.default",
            "$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers",
            "$JS.ACK.JOBS.default.1.1.1.1.0",
        ],
    ),
    (
        "dispatcher",
        &[
            "redial.results",
            "redial.ctl.claim",
            "redial.api.calls.submit",
            "redial.api.tasks.submit",
            "redial.intake.calls",
            "redial.intake.tasks",
            "$JS.API.STREAM.DELETE.JOBS",
            "$JS.API.STREAM.PURGE.RESULTS",
            "$JS.API.STREAM.CREATE.OTHER",
            "$JS.API.STREAM.UPDATE.RESULTS",
            "$JS.API.CONSUMER.DELETE.RESULTS.other",
            "$JS.API.CONSUMER.MSG.NEXT.JOBS.default",
        ],
    ),
];

/// Subjects that a role must not subscribe to, above all those of others.
const NO_SUBSCRIBE: [(&str, &[&str]); 3] = [
    ("worker", &[">", "redial.>", "redial.api.>", "redial.ctl.claim", "redial.jobs.>", "_INBOX.>", "_INBOX_client.>"]),
    (
        "client",
        &[">", "redial.ctl.>", "redial.jobs.>", "redial.results", "redial.worker.>", "_INBOX_worker.>", "$JS.>"],
    ),
    ("dispatcher", &[">", "redial.jobs.>", "redial.worker.>", "_INBOX_client.>", "_INBOX_worker.>"]),
];

#[tokio::test]
async fn everything_else_is_refused() {
    let server = Server::start().await;
    for (role, subjects) in NO_PUBLISH {
        let queue = server.connect(role).await;
        for subject in subjects {
            queue.publish(subject, &json!({})).await.unwrap();
            server.refusal("Publish", role, subject).await;
        }
    }
    for (role, subjects) in NO_SUBSCRIBE {
        let queue = server.connect(role).await;
        for subject in subjects {
            let _subscription = queue.subscribe(subject).await.unwrap();
            server.refusal("Subscription", role, subject).await;
        }
    }
}

#[tokio::test]
async fn a_refused_job_is_not_stored() {
    let server = Server::start().await;
    let dispatcher = dispatcher(&server).await;
    let worker = server.connect("worker").await;
    worker.publish("redial.jobs.default.echo", &json!({})).await.unwrap();
    server.refusal("Publish", "worker", "redial.jobs.default.echo").await;
    assert_eq!(dispatcher.ensure_streams().await.unwrap().jobs, 0);
}

#[tokio::test]
async fn a_connection_needs_a_password() {
    let server = Server::start().await;
    for login in ["", "worker:wrong@", "dispatcher:@", "worker:@", "client:@", "client@", "nobody:secret@", "secret@"] {
        let refused = server.connect_as(login, "_INBOX").await;
        assert!(matches!(refused, Err(QueueError::Refused { .. })), "{login:?}: {:?}", refused.err());
    }
}
