//! What `redial nats-config` writes, on a real nats-server: each user can do what the access file says, and the server
//! refuses everything else. `REDIAL_NATS_SERVER` names another nats-server than the project's.

mod limits;
mod reloading;
mod replies;
pub(crate) mod server;
mod streams;

use redial_proto::subjects::Verb;
use redial_test_stack::RawNats;
use serde_json::json;

use self::server::Server;

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
async fn dispatcher(server: &Server) -> RawNats {
    streams::create(server).await;
    let mut dispatcher = server.connect("dispatcher").await;
    for subject in ["redial.api.>", "redial.gateway.>", "redial.ctl.>", "redial.dispatchers.>"] {
        dispatcher.subscribe(subject).await;
    }
    dispatcher
}

/// A request arrives at the dispatcher under the same subject, and its answer at who asked.
async fn ask(dispatcher: &mut RawNats, client: &mut RawNats, inbox: &str, subject: &str) {
    let reply = format!("{inbox}.ask");
    client.send(subject, &reply, "", "question").await;
    let request = dispatcher.wait_for(subject, |message| message.subject == subject).await;
    assert!(request.reply.starts_with("_R_."), "only the server makes such a reply subject: {request:?}");
    dispatcher.send(&request.reply, "", "", "answer").await;
    let answer = client.wait_for(subject, |message| message.subject == reply).await;
    assert_eq!(answer.body, "answer", "{subject}");
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
            let subject = format!("redial.gateway.{who}.{role}.{}", verb.name());
            ask(&mut dispatcher, &mut gateway, "_INBOX_gateway", &subject).await;
        }
    }
    gateway.subscribe("redial.events.>").await;
    for tenant in ["acme", "globex"] {
        let (call, delta) =
            (format!("redial.events.{tenant}.calls.1"), format!("redial.events.{tenant}.tasks.1.delta"));
        dispatcher.send(&call, "", "", "end").await;
        models.send(&delta, "", "", "piece").await;
        for (subject, body) in [(call, "end"), (delta, "piece")] {
            let heard = gateway.wait_for(&subject, |message| message.subject == subject).await;
            assert_eq!(heard.body, body);
        }
    }
    for client in [&gateway, &models, &dispatcher] {
        assert_eq!(client.refusals, Vec::<String>::new());
    }
}

/// Besides what the workers of the tests of attacks do.
#[tokio::test]
async fn workers_can_do_their_work() {
    let server = Server::start(ACCESS).await;
    let mut dispatcher = dispatcher(&server).await;
    let mut worker = server.connect("worker.tools").await;
    for verb in ["register", "claim", "heartbeat", "release"] {
        let subject = format!("redial.ctl.tools.default+slow.{verb}");
        ask(&mut dispatcher, &mut worker, "_INBOX_worker.tools", &subject).await;
    }
    worker.subscribe("redial.worker.tools.>").await;
    dispatcher.send("redial.worker.models.models-1", "", "", "other").await;
    dispatcher.send("redial.worker.tools.tools-1", "", "", "own").await;
    let notice = worker.wait_for("a notice", |message| message.subject.starts_with("redial.worker.")).await;
    assert_eq!(notice.body, "own");
    for client in [&worker, &dispatcher] {
        assert_eq!(client.refusals, Vec::<String>::new());
    }
}

const USERS: [&str; 6] = ["acme.alice", "acme.carl", "globex.bob", "worker.tools", "gateway", "dispatcher"];

/// Subjects, each with those of the users who may publish to it: not to those of others, of roles that they do not have, and
/// of the streams.
const PUBLISH: [(&str, &[&str]); 64] = [
    ("redial.api.acme.alice.submit.calls.submit", &["acme.alice"]),
    ("redial.api.acme.alice.operate.calls.redrive", &[]),
    ("redial.api.acme.alice.inline.tasks.submit", &[]),
    ("redial.api.acme.alice.admin.tools.forget", &[]),
    ("redial.api.acme.alice.submit.calls.other", &[]),
    ("redial.api.acme.alice.submit.more.calls.submit", &[]),
    ("redial.api.acme.carl.submit.calls.submit", &[]),
    ("redial.api.acme.carl.read.tasks.get", &[]),
    ("redial.api.globex.alice.submit.calls.submit", &[]),
    ("redial.api.globex.bob.submit.calls.submit", &[]),
    ("redial.api.globex.bob.read.calls.get", &[]),
    ("redial.gateway.acme.alice.submit.calls.submit", &["gateway"]),
    ("redial.gateway.globex.bob.read.calls.get", &["gateway"]),
    ("redial.gateway.acme.alice.submit.calls.other", &[]),
    ("redial.intake.acme.alice.submit.calls", &["acme.alice"]),
    ("redial.intake.acme.alice.inline.tasks", &[]),
    // Dispatchers would read what a wildcard lets in, and their client does not survive each subject.
    ("redial.intake.acme.alice.submit.other", &[]),
    ("redial.intake.acme.alice.submit.x.calls", &[]),
    ("redial.intake.acme.carl.submit.calls", &[]),
    ("redial.intake.globex.alice.submit.calls", &[]),
    ("redial.intake.globex.bob.submit.calls", &[]),
    ("redial.events.acme.calls.1", &["dispatcher"]),
    ("redial.events.acme.tasks.1.delta", &["dispatcher"]),
    ("redial.ctl.tools.default+slow.claim", &["worker.tools"]),
    ("redial.ctl.tools.default.claim", &[]),
    ("redial.ctl.tools.default+models+slow.claim", &[]),
    ("redial.ctl.models.models.claim", &[]),
    ("redial.results.tools", &["worker.tools"]),
    ("redial.results.models", &[]),
    ("redial.results", &[]),
    ("redial.jobs.default.echo", &["dispatcher"]),
    ("redial.worker.tools.w", &["dispatcher"]),
    ("redial.dispatchers.tools_changed", &["dispatcher"]),
    ("_INBOX_client.acme.alice.1", &[]),
    ("_INBOX_client.acme.carl.1", &[]),
    ("_INBOX_worker.tools.1", &[]),
    ("_INBOX_worker.models.1", &[]),
    ("_INBOX_gateway.1", &[]),
    ("_INBOX_dispatcher.1", &[]),
    ("_R_.x.y", &["dispatcher"]),
    ("$JS.API.INFO", &["worker.tools", "dispatcher"]),
    ("$JS.API.STREAM.CREATE.JOBS", &["dispatcher"]),
    ("$JS.API.STREAM.CREATE.OTHER", &[]),
    ("$JS.API.STREAM.UPDATE.OTHER", &[]),
    ("$JS.API.STREAM.DELETE.JOBS", &[]),
    ("$JS.API.STREAM.PURGE.JOBS", &[]),
    ("$JS.API.STREAM.PURGE.INTAKE", &[]),
    ("$JS.API.STREAM.PURGE.RESULTS", &[]),
    ("$JS.API.STREAM.MSG.GET.INTAKE", &["dispatcher"]),
    ("$JS.API.STREAM.MSG.GET.RESULTS", &["dispatcher"]),
    ("$JS.API.CONSUMER.DURABLE.CREATE.JOBS.mine", &["dispatcher"]),
    ("$JS.API.CONSUMER.DELETE.JOBS.default", &["dispatcher"]),
    ("$JS.API.CONSUMER.DELETE.RESULTS.other", &[]),
    ("$JS.API.CONSUMER.INFO.JOBS.models", &["dispatcher"]),
    ("$JS.API.CONSUMER.MSG.NEXT.JOBS.default", &["worker.tools"]),
    ("$JS.API.CONSUMER.MSG.NEXT.JOBS.models", &[]),
    ("$JS.API.CONSUMER.MSG.NEXT.JOBS.default+17", &[]),
    ("$JS.API.CONSUMER.MSG.NEXT.INTAKE.dispatchers", &["dispatcher"]),
    ("$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers", &["dispatcher"]),
    ("$JS.ACK.JOBS.default.1.1.1.1.0", &["worker.tools"]),
    ("$JS.ACK.JOBS.models.1.1.1.1.0", &[]),
    ("$JS.ACK._.x.JOBS.models.1.1.1.1.0.r", &[]),
    ("$JS.ACK.INTAKE.dispatchers.1.1.1.1.0", &["dispatcher"]),
    ("$JS.ACK.RESULTS.dispatchers.1.1.1.1.0", &["dispatcher"]),
];

/// The same for subscriptions.
const SUBSCRIBE: [(&str, &[&str]); 23] = [
    (">", &[]),
    ("redial.>", &[]),
    ("redial.api.>", &["dispatcher"]),
    ("redial.gateway.>", &["dispatcher"]),
    ("redial.ctl.>", &["dispatcher"]),
    ("redial.intake.>", &[]),
    ("redial.jobs.>", &[]),
    ("redial.worker.>", &[]),
    ("redial.worker.tools.>", &["worker.tools"]),
    ("redial.worker.models.>", &[]),
    ("redial.events.>", &["gateway"]),
    ("redial.events.acme.>", &["acme.alice", "gateway"]),
    ("redial.events.acme.tasks.*.delta", &["acme.alice", "gateway"]),
    ("redial.events.globex.>", &["gateway"]),
    ("redial.events.*.calls.*", &["gateway"]),
    ("_INBOX.>", &[]),
    ("_INBOX_client.>", &[]),
    ("_INBOX_client.acme.>", &[]),
    ("_INBOX_client.acme.carl.>", &["acme.carl"]),
    ("_INBOX_gateway.>", &["gateway"]),
    ("_INBOX_worker.models.>", &[]),
    ("_R_.>", &[]),
    ("$JS.>", &[]),
];

#[tokio::test]
async fn everything_else_is_refused() {
    let server = Server::start(ACCESS).await;
    for user in USERS {
        let mut client = server.connect(user).await;
        for (subject, may) in PUBLISH {
            client.send(subject, "", "", "{}").await;
            let said = client.refusals.pop().unwrap_or_default();
            let refused = said.contains(&format!("Publish to \"{subject}\""));
            assert_eq!(refused, !may.contains(&user), "{user} {subject}: {said}");
        }
        for (subject, may) in SUBSCRIBE {
            client.subscribe(subject).await;
            let said = client.refusals.pop().unwrap_or_default();
            let refused = said.contains(&format!("Subscription to \"{subject}\""));
            assert_eq!(refused, !may.contains(&user), "{user} {subject}: {said}");
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
