//! What `redial nats-config` writes, on a real nats-server: each user can do what the access file says, and the server
//! refuses everything else. `REDIAL_NATS_SERVER` names another nats-server than the project's.

pub(crate) mod client;
mod reloading;
mod replies;
pub(crate) mod server;
mod streams;

use redial_proto::subjects::Verb;
use serde_json::json;

use self::{client::Client, server::Server};

/// Two tenants, users with different roles, and workers with different pools.
const ACCESS: &str = r#"
[dispatcher]
password = "$TEST_DISPATCHER"
[gateway]
password = "$TEST_PASSWORD"
[tenants.acme.users]
alice = { roles = ["submit", "read"], password = "$TEST_PASSWORD" }
carl = { roles = ["inline"], password = "$TEST_PASSWORD" }
[tenants.globex.users]
bob = { roles = ["operate", "admin"], password = "$TEST_PASSWORD" }
# The hash of U*U, which is published with bcrypt's other test vectors.
dora = { roles = ["read"], password = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW" }
[workers.tools]
pools = ["default", "slow"]
password = "$TEST_PASSWORD"
[workers.models]
pools = ["models"]
password = "$TEST_PASSWORD"
"#;

/// A dispatcher's connection, with all streams.
async fn dispatcher(server: &Server) -> Client {
    let mut dispatcher = server.connect("dispatcher").await;
    streams::create(&mut dispatcher).await;
    for subject in ["redial.api.>", "redial.ctl.>", "redial.dispatchers.>"] {
        dispatcher.subscribe(subject).await;
    }
    dispatcher
}

/// A request arrives at the dispatcher under the same subject, and its answer at who asked.
async fn ask(dispatcher: &mut Client, client: &mut Client, inbox: &str, subject: &str) {
    let reply = format!("{inbox}.ask");
    client.publish(subject, &reply, "", "question").await;
    let request = dispatcher.wait_for(subject, |message| message.subject == subject).await;
    assert!(request.reply.starts_with("_R_."), "only the server makes such a reply subject: {request:?}");
    dispatcher.publish(&request.reply, "", "", "answer").await;
    let answer = client.wait_for(subject, |message| message.subject == reply).await;
    assert_eq!(answer.body, "answer", "{subject}");
}

/// Takes the next message of a stream as a dispatcher does.
async fn take(dispatcher: &mut Client, stream: &str, subject: &str) {
    let pull = format!("CONSUMER.MSG.NEXT.{stream}.dispatchers");
    let message = dispatcher.request(&format!("$JS.API.{pull}"), r#"{"batch": 1}"#).await;
    assert_eq!(message.subject, subject);
    dispatcher.publish(&message.reply, "", "", "+ACK").await;
}

#[tokio::test]
async fn users_can_do_what_their_roles_allow() {
    let server = Server::start(ACCESS).await;
    let mut dispatcher = dispatcher(&server).await;
    let allowed: [(&str, &[&str]); 3] = [
        ("acme.alice", &["submit.calls.submit", "submit.tasks.cancel", "read.calls.get", "read.tasks.get"]),
        ("acme.carl", &["inline.tasks.submit"]),
        ("globex.bob", &["operate.calls.redrive", "admin.tools.accept", "admin.tenants.forget"]),
    ];
    for (user, verbs) in allowed {
        let mut client = server.connect(user).await;
        for verb in verbs {
            let subject = format!("redial.api.{user}.{verb}");
            ask(&mut dispatcher, &mut client, &format!("_INBOX_client.{user}"), &subject).await;
        }
        assert_eq!(client.refusals, Vec::<String>::new(), "{user}");
    }
    for (user, role) in [("acme.alice", "submit"), ("acme.carl", "inline")] {
        let mut client = server.connect(user).await;
        let subject = format!("redial.intake.{user}.{role}.tasks");
        let stored = client.request(&subject, "{}").await;
        assert!(stored.body.contains("\"INTAKE\""), "{stored:?}");
        take(&mut dispatcher, "INTAKE", &subject).await;
    }
    assert_eq!(dispatcher.refusals, Vec::<String>::new());
}

/// It asks for users of all tenants in all roles, and hears the events of all.
#[tokio::test]
async fn gateways_can_do_their_work() {
    let server = Server::start(ACCESS).await;
    let mut dispatcher = dispatcher(&server).await;
    let (mut models, mut gateway) = (server.connect("worker.models").await, server.connect("gateway").await);
    for &verb in Verb::ALL {
        let role = verb.roles()[0];
        for who in ["acme.alice", "globex.nobody"] {
            let subject = format!("redial.api.{who}.{role}.{}", verb.name());
            ask(&mut dispatcher, &mut gateway, "_INBOX_gateway", &subject).await;
        }
    }
    gateway.subscribe("redial.events.>").await;
    for tenant in ["acme", "globex"] {
        let (call, delta) =
            (format!("redial.events.{tenant}.calls.1"), format!("redial.events.{tenant}.tasks.1.delta"));
        dispatcher.publish(&call, "", "", "end").await;
        models.publish(&delta, "", "", "piece").await;
        for (subject, body) in [(call, "end"), (delta, "piece")] {
            let heard = gateway.wait_for(&subject, |message| message.subject == subject).await;
            assert_eq!(heard.body, body);
        }
    }
    for client in [&gateway, &models, &dispatcher] {
        assert_eq!(client.refusals, Vec::<String>::new());
    }
}

#[tokio::test]
async fn workers_can_do_their_work() {
    let server = Server::start(ACCESS).await;
    let mut dispatcher = dispatcher(&server).await;
    let mut worker = server.connect("worker.tools").await;
    for verb in ["register", "claim", "heartbeat", "release"] {
        ask(&mut dispatcher, &mut worker, "_INBOX_worker.tools", &format!("redial.ctl.tools.default+slow.{verb}"))
            .await;
    }
    for consumer in ["default", "default+2"] {
        let subject = format!("redial.jobs.{consumer}.echo");
        dispatcher.request(&subject, "job").await;
        let pull = format!("$JS.API.CONSUMER.MSG.NEXT.JOBS.{consumer}");
        let job = worker.request(&pull, r#"{"batch": 1, "expires": 5000000000}"#).await;
        assert_eq!((job.subject.as_str(), job.body.as_str()), (subject.as_str(), "job"));
        let acked = worker.request(&job.reply, "+ACK").await;
        assert_eq!(acked.body, "");
        assert!(
            worker.request(&format!("$JS.API.CONSUMER.INFO.JOBS.{consumer}"), "").await.body.contains("num_pending")
        );
    }
    assert!(worker.request("$JS.API.INFO", "").await.body.contains("account_info_response"));
    assert!(worker.request("redial.results.tools", "{}").await.body.contains("RESULTS"));
    take(&mut dispatcher, "RESULTS", "redial.results.tools").await;
    worker.subscribe("redial.worker.tools.>").await;
    dispatcher.publish("redial.worker.models.models-1", "", "", "other").await;
    dispatcher.publish("redial.worker.tools.tools-1", "", "", "own").await;
    let notice = worker.wait_for("a notice", |message| message.subject.starts_with("redial.worker.")).await;
    assert_eq!(notice.body, "own");
    dispatcher.publish("redial.dispatchers.tools_changed", "", "", "").await;
    assert!(
        !streams::state(&mut dispatcher).await.keys().any(|key| key.contains("redial.jobs.")),
        "jobs are acknowledged"
    );
    for client in [&worker, &dispatcher] {
        assert_eq!(client.refusals, Vec::<String>::new());
    }
}

/// Subjects that a user must not publish to: those of others, of roles that it does not have, and ways into the streams.
const NO_PUBLISH: [(&str, &[&str]); 6] = [
    (
        "acme.alice",
        &[
            "redial.api.acme.alice.operate.calls.redrive",
            "redial.api.acme.alice.inline.tasks.submit",
            "redial.api.acme.alice.admin.tools.forget",
            "redial.api.acme.carl.submit.calls.submit",
            "redial.api.globex.alice.submit.calls.submit",
            "redial.api.globex.bob.read.calls.get",
            "redial.intake.acme.alice.inline.tasks",
            "redial.intake.acme.carl.submit.calls",
            "redial.intake.globex.alice.submit.calls",
            "redial.events.acme.calls.1",
            "redial.events.acme.tasks.1.delta",
            "redial.ctl.tools.default+slow.claim",
            "redial.results.tools",
            "redial.jobs.default.echo",
            "redial.worker.tools.w",
            "redial.dispatchers.tools_changed",
            "_INBOX_client.acme.carl.1",
            "_INBOX_worker.tools.1",
            "_INBOX_gateway.1",
            "_INBOX_dispatcher.1",
            "_R_.x.y",
            "$JS.API.INFO",
            "$JS.API.STREAM.CREATE.JOBS",
            "$JS.API.STREAM.PURGE.INTAKE",
            "$JS.API.STREAM.MSG.GET.INTAKE",
            "$JS.API.CONSUMER.MSG.NEXT.JOBS.default",
            "$JS.API.CONSUMER.MSG.NEXT.INTAKE.dispatchers",
            "$JS.ACK.INTAKE.dispatchers.1.1.1.1.0",
        ],
    ),
    (
        "acme.carl",
        &[
            "redial.api.acme.carl.submit.calls.submit",
            "redial.api.acme.carl.read.tasks.get",
            "redial.intake.acme.carl.submit.calls",
        ],
    ),
    (
        "globex.bob",
        &[
            "redial.api.globex.bob.submit.calls.submit",
            "redial.api.globex.bob.read.calls.get",
            "redial.intake.globex.bob.submit.calls",
        ],
    ),
    (
        "worker.tools",
        &[
            "redial.ctl.tools.default.claim",
            "redial.ctl.tools.default+models+slow.claim",
            "redial.ctl.models.models.claim",
            "redial.results.models",
            "redial.results",
            "redial.worker.tools.w",
            "redial.jobs.default.echo",
            "redial.api.acme.alice.submit.calls.submit",
            "redial.intake.acme.alice.submit.calls",
            "redial.events.acme.calls.1",
            "redial.events.acme.tasks.1.delta",
            "_INBOX_worker.models.1",
            "_R_.x.y",
            "$JS.API.STREAM.DELETE.JOBS",
            "$JS.API.STREAM.PURGE.JOBS",
            "$JS.API.STREAM.MSG.GET.RESULTS",
            "$JS.API.CONSUMER.DURABLE.CREATE.JOBS.mine",
            "$JS.API.CONSUMER.DELETE.JOBS.default",
            "$JS.API.CONSUMER.INFO.JOBS.models",
            "$JS.API.CONSUMER.MSG.NEXT.JOBS.models",
            "$JS.API.CONSUMER.MSG.NEXT.JOBS.default+17",
            "$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers",
            "$JS.ACK.JOBS.models.1.1.1.1.0",
            "$JS.ACK._.x.JOBS.models.1.1.1.1.0.r",
            "$JS.ACK.RESULTS.dispatchers.1.1.1.1.0",
        ],
    ),
    (
        "gateway",
        &[
            "redial.intake.acme.alice.submit.calls",
            "redial.api.acme.alice.submit.calls.other",
            "redial.api.acme.alice.submit.more.calls.submit",
            "redial.events.acme.calls.1",
            "redial.events.acme.tasks.1.delta",
            "redial.ctl.tools.default+slow.claim",
            "redial.results.tools",
            "redial.jobs.default.echo",
            "redial.worker.tools.w",
            "redial.dispatchers.tools_changed",
            "_INBOX_client.acme.alice.1",
            "_R_.x.y",
            "$JS.API.INFO",
            "$JS.API.STREAM.PURGE.INTAKE",
        ],
    ),
    (
        "dispatcher",
        &[
            "redial.results.tools",
            "redial.ctl.tools.default.claim",
            "redial.api.acme.alice.submit.calls.submit",
            "redial.intake.acme.alice.submit.calls",
            "_INBOX_client.acme.alice.1",
            "$JS.API.STREAM.DELETE.JOBS",
            "$JS.API.STREAM.PURGE.INTAKE",
            "$JS.API.STREAM.PURGE.RESULTS",
            "$JS.API.STREAM.CREATE.OTHER",
            "$JS.API.STREAM.UPDATE.OTHER",
            "$JS.API.CONSUMER.DELETE.RESULTS.other",
            "$JS.API.CONSUMER.MSG.NEXT.JOBS.default",
        ],
    ),
];

/// Subjects that a user must not subscribe to, above all those of others.
const NO_SUBSCRIBE: [(&str, &[&str]); 5] = [
    (
        "acme.alice",
        &[
            ">",
            "redial.>",
            "redial.events.>",
            "redial.events.globex.>",
            "redial.events.*.calls.*",
            "redial.api.>",
            "redial.intake.>",
            "redial.worker.>",
            "_INBOX.>",
            "_INBOX_client.>",
            "_INBOX_client.acme.>",
            "_INBOX_client.acme.carl.>",
            "_INBOX_gateway.>",
            "_R_.>",
            "$JS.>",
        ],
    ),
    ("acme.carl", &["redial.events.acme.>", "redial.events.acme.tasks.*.delta"]),
    (
        "worker.tools",
        &[
            ">",
            "redial.>",
            "redial.worker.>",
            "redial.worker.models.>",
            "redial.jobs.>",
            "redial.ctl.>",
            "_INBOX_worker.models.>",
            "_R_.>",
        ],
    ),
    ("gateway", &[">", "redial.>", "redial.api.>", "redial.worker.>", "_INBOX.>", "_INBOX_client.>", "_R_.>", "$JS.>"]),
    ("dispatcher", &[">", "redial.jobs.>", "redial.worker.>", "_INBOX_client.>", "_INBOX_worker.>", "_R_.>"]),
];

#[tokio::test]
async fn everything_else_is_refused() {
    let server = Server::start(ACCESS).await;
    for (user, subjects) in NO_PUBLISH {
        let mut client = server.connect(user).await;
        for subject in subjects {
            client.publish(subject, "", "", "{}").await;
            let refused = client.refusals.pop().unwrap_or_default();
            assert!(refused.contains(&format!("Publish to \"{subject}\"")), "{user} {subject}: {refused}");
        }
    }
    for (user, subjects) in NO_SUBSCRIBE {
        let mut client = server.connect(user).await;
        for subject in subjects {
            client.subscribe(subject).await;
            let refused = client.refusals.pop().unwrap_or_default();
            assert!(refused.contains(&format!("Subscription to \"{subject}\"")), "{user} {subject}: {refused}");
        }
    }
}

#[tokio::test]
async fn a_connection_needs_its_password() {
    let server = Server::start(ACCESS).await;
    let logins = [
        json!({}),
        json!({"user": "acme.alice"}),
        json!({"user": "acme.alice", "pass": ""}),
        json!({"user": "acme.alice", "pass": "12e4"}),
        json!({"user": "dispatcher", "pass": "wrong"}),
        json!({"user": "globex.dora", "pass": "U*V"}),
        json!({"user": "nobody", "pass": "12e4"}),
        json!({"auth_token": "12e4"}),
    ];
    for login in logins {
        let refused = server.login(&login, "_INBOX").await.err();
        assert!(refused.is_some_and(|refused| refused.contains("Authorization Violation")), "{login}");
    }
    assert!(server.login(&json!({"user": "globex.dora", "pass": "U*U"}), "_INBOX").await.is_ok());
}
