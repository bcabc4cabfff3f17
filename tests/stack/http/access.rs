//! The access file: what it takes away ends, also what a gateway reads itself.

use std::path::{Path, PathBuf};

use redial_proto::{CreateRedrive, RedriveFilter, RedriveId, RedriveView, ToolEffect, UserRole, subjects::Verb};
use redial_test_stack::{Stack, TestGateway, file, scripted_tool, unique_path, until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    client::{Answer, Http},
    sse::Sse,
    tokens::ANSWER,
};

const ALICE: &str = r#"roles = ["submit", "read", "operate"]"#;
const ACCESS: &str = r#"
[dispatcher]
password = "$A"
[gateway]
password = "$B"
[tenants.acme.users.alice]
roles = ["submit", "read", "operate"]
password = "$C"
[tenants.acme.users.bob]
roles = ["submit", "read"]
password = "$D"
"#;

/// Gives alice these roles.
fn give(file: &Path, roles: &str) {
    std::fs::write(file, ACCESS.replace(ALICE, &format!("roles = [{roles}]"))).unwrap();
}

/// A stack with `tool`, whose dispatcher and gateway read the file.
async fn start() -> (Stack, TestGateway, PathBuf) {
    let file = file("access", ACCESS);
    let mut stack = Stack::start_with(|stack| stack.dispatcher.access = Some(file.clone())).await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http_with(|_| {}).await;
    (stack, gateway, file)
}

/// A client with a token of a user of `acme`.
async fn user(stack: &Stack, gateway: &TestGateway, name: &str, roles: &[UserRole]) -> Http {
    Http::of(gateway).of_user(&stack.user("acme", name).await, roles).await
}

/// A wait of a minute.
fn wait(http: &Http, method: Method, path: &str, body: Option<&Value>) -> JoinHandle<Answer> {
    let request = http.request(method, path).header("prefer", "wait=60");
    let request = body.iter().fold(request, reqwest::RequestBuilder::json);
    tokio::spawn(async move { Answer::of(request).await })
}

/// Waits until so many requests and streams wait for calls and tasks.
pub(crate) async fn waiting(reader: &Http, count: u32) {
    let line = format!("redial_gateway_waiting {count}");
    until(&line, async || reader.get("/metrics").await.text.lines().any(|one| one == line).then_some(())).await;
}

#[tokio::test]
async fn reads_streams_and_waits_end_with_the_right_of_the_user() {
    let (stack, gateway, file) = start().await;
    let alice = user(&stack, &gateway, "alice", &[UserRole::Submit, UserRole::Read]).await;
    let bob = user(&stack, &gateway, "bob", &[UserRole::Read]).await;
    let hold = unique_path("hold");
    let body = json!({"tool": "tool", "arguments": {"hold": hold}});
    let call = alice.post("/v1/calls", &body).await.must(202)["call"].as_str().unwrap().to_owned();
    let path = format!("/v1/calls/{call}");
    alice.get(&path).await.must(200);

    // It begins first: if nothing ended alice's waits and streams, it would be over before them.
    let mut bobs = wait(&bob, Method::GET, &path, None);
    waiting(&bob, 1).await;
    let mut feed = Sse::open_with(&gateway.url, "/v1/events", alice.token()).await;
    feed.next_of("listening").await;
    let events = Sse::open_with(&gateway.url, &format!("{path}/events"), alice.token()).await;
    let one = wait(&alice, Method::GET, &path, None);
    let several = wait(&alice, Method::POST, "/v1/calls/wait", Some(&json!({"calls": [call]})));
    waiting(&bob, 4).await;
    give(&file, r#""submit""#);
    let over = async {
        feed.rest().await;
        events.rest().await;
        (one.await.unwrap().must(202), several.await.unwrap().must(202))
    };
    let (one, several) = tokio::select! {
        over = over => over,
        bobs = &mut bobs => panic!("bob's wait was over first: {bobs:?}"),
    };
    assert_eq!((&one["call"], &several["done"]), (&json!(call), &json!(false)), "as at a timeout");
    let detail = alice.get(&path).await.problem(403, "forbidden");
    assert_eq!(
        detail,
        "user alice of tenant acme does not have the role read in the gateway's access file, which leaves the token the \
         roles submit; allowed: one of read"
    );
    alice.post("/v1/calls", &json!({"tool": "tool", "arguments": {}})).await.must(202);
    // Not a role alone: bob is gone with his tenant.
    std::fs::write(&file, ACCESS.replace(".acme.", ".globex.")).unwrap();
    assert_eq!(bobs.await.unwrap().must(202)["call"], json!(call));
    bob.get(&path).await.problem(401, "unauthenticated");
    std::fs::write(hold, "").unwrap();
    stack.drained(ANSWER).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_redrive_by_filter_ends_with_the_right_of_the_user_who_asked_for_it() {
    let (stack, gateway, file) = start().await;
    let alice = user(&stack, &gateway, "alice", &[UserRole::Submit, UserRole::Read, UserRole::Operate]).await;
    let calls: Vec<Value> = (0..30).map(|n| json!({"tool": "tool", "arguments": {"n": n, "fail": "auth"}})).collect();
    let accepted = alice.post("/v1/calls", &json!({"calls": calls})).await.must(200);
    let calls: Vec<&Value> = accepted["results"].as_array().unwrap().iter().map(|one| &one["call"]).collect();
    let ended = wait(&alice, Method::POST, "/v1/calls/wait", Some(&json!({"calls": calls})));
    assert_eq!(ended.await.unwrap().must(200)["done"], true);

    let body = json!({"filter": {"tool": "tool", "state": "failed"}, "rate": 1});
    let redrive = alice.post("/v1/redrives", &body).await.must(202)["redrive"].as_str().unwrap().to_owned();
    let path = format!("/v1/redrives/{redrive}");
    alice.until(&path, |view| view["redriven"].as_u64() > Some(0)).await;
    give(&file, r#""submit", "read""#);
    let ended = alice.until(&path, |view| !view["finished_at"].is_null()).await;
    assert_eq!(ended["state"], "failed", "{ended}");
    let why = "user alice of tenant acme does not have the role operate in the dispatcher's access file; allowed: submit, read";
    assert_eq!(ended["error"], why);

    // What the permissions of the NATS server allowed, the access file does not take away.
    let (bob, acme) = (stack.user("acme", "bob").await, "acme".parse().unwrap());
    let filter = RedriveFilter { tool: Some("tool".to_owned()), ..RedriveFilter::default() };
    let create =
        CreateRedrive { redrive: RedriveId::generate(), filter, dry_run: false, rate: Some(1_000), at_most: None };
    let _: RedriveView = bob.ask(Verb::RedriveCreate, &create, ANSWER).await.unwrap();
    let store = stack.store(redial_store::Purpose::Audit).await;
    let ended = until("the redrive ends", async || {
        store.of(&acme).redrive(create.redrive).await.unwrap().filter(|view| view.state.is_terminal())
    });
    let ended = ended.await;
    assert_eq!((ended.state.as_str(), ended.error), ("done", None));
    store.close().await;
    stack.drained(ANSWER).await;
    stack.finish().await;
}
