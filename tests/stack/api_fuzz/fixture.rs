//! A gateway over a stack with the data of two tenants.

use redial_proto::{
    UserRole,
    subjects::{Intake, intake},
};
use redial_queue::Queue;
use redial_test_stack::{Stack, TestGateway, file, token, until};
use redial_tools::Tool;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::http::client::Http;

/// In everything that the other tenant has on record. The checker of the stack knows it as that tenant's, too.
pub(crate) const CANARY: &str = "canary-of-globex";
const AGENTS: &str = "[agents.travel]\nmodel = \"small\"\ntools = [\"*\"]\nfunction_timeout_ms = 86400000\n";
const SCRIPT: &str = r#"
[[rule]]
when = { last = "user", offers = "ask" }
calls = [{ name = "ask", arguments = {} }]

[[rule]]
text = "Hello."
"#;

pub(crate) struct Fixture {
    stack: Stack,
    pub(crate) gateway: TestGateway,
    acme: Tenant,
    globex: Tenant,
    /// Ids of the tenant that does not ask, by resource.
    pub(crate) foreign: Value,
    /// What it had on record when it had all of them.
    record: Vec<Value>,
}

/// A connection to NATS, and a client over HTTP with every role.
struct Tenant {
    queue: Queue,
    http: Http,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let mut stack = Stack::start_with(|stack| stack.dispatcher.agents = Some(file("agents", AGENTS))).await;
        let script = file("script", SCRIPT).display().to_string();
        let models = file("models", &format!("[models.small]\nprovider = \"script\"\nscript = {script:?}\n"));
        stack.work(vec![Tool::echo()]).await;
        stack.serve_models(&models).await;
        // What is submitted at random may wait for what never comes.
        stack.leaves_calls();
        let gateway = stack.serve_http_with(|_| {}).await;
        let acme = Tenant::new(stack.user("acme", "alice").await, &gateway).await;
        let globex = Tenant::new(stack.user("globex", "bob").await, &gateway).await;
        let foreign = globex.fill(CANARY).await;
        let record = globex.record().await;
        Self { stack, gateway, acme, globex, foreign, record }
    }

    /// A token of the tenant that asks.
    pub(crate) async fn token(&self, roles: &[UserRole]) -> String {
        token(&self.acme.queue, roles).await.text()
    }

    /// Puts something of each kind on record for the tenant that asks, and returns the ids by resource. Whoever asks may end or
    /// erase it.
    pub(crate) async fn own(&self) -> Value {
        let mut ids = self.acme.fill(&format!("of-acme-{}", uuid::Uuid::now_v7())).await;
        for (resource, name) in [("tools", "echo"), ("agents", "travel"), ("models", "travel"), ("errors", "not_found")]
        {
            add(&mut ids, resource, name.into());
        }
        ids
    }

    pub(crate) async fn finish(self) {
        assert_eq!(self.globex.record().await, self.record, "what another tenant has on record was changed");
        drop(self.gateway);
        self.stack.finish().await;
    }
}

impl Tenant {
    async fn new(queue: Queue, gateway: &TestGateway) -> Self {
        let http = Http::of(gateway).of_user(&queue, &UserRole::ALL).await;
        Self { queue, http }
    }

    /// Puts something of each kind on record, with `text` in it. Ids have nothing of it.
    async fn fill(&self, text: &str) -> Value {
        let mut ids = json!({});
        let [one, two, erased] = [(); 3].map(|()| uuid::Uuid::now_v7().to_string());
        let ask = json!([{"type": "function", "name": "ask", "description": text, "parameters": {"type": "object"}}]);
        let redrive = json!({"filter": {"tool": text}, "dry_run": true});
        let webhook = json!({"url": format!("https://{text}.example/"), "events": ["call.failed"], "tools": ["none"]});
        for (resource, id, body) in [
            ("calls", "/call", json!({"tool": "echo", "arguments": {"text": text}, "key": text, "conversation": text})),
            ("tasks", "/task", json!({"input": text, "agent": "travel", "key": text, "conversation": one})),
            ("tasks", "/task", json!({"input": text, "agent": "travel", "conversation": two})),
            ("responses", "/id", json!({"model": "travel", "input": text, "metadata": {"text": text}})),
            ("responses", "/id", json!({"model": "travel", "input": text, "tools": ask})),
            ("redrives", "/redrive", redrive.clone()),
            ("redrives", "/redrive", redrive),
            ("webhooks", "/webhook/webhook", webhook.clone()),
            ("webhooks", "/webhook/webhook", webhook),
            ("tokens", "/id", json!({"roles": ["read"], "label": text})),
        ] {
            let request = self.http.request(Method::POST, &format!("/v1/{resource}")).header("prefer", "wait=30");
            let answer = json_of(request.json(&body)).await;
            add(&mut ids, resource, answer.pointer(id).cloned().unwrap_or_else(|| panic!("{resource}: {answer}")));
        }
        add(&mut ids, "conversations", one.into());
        add(&mut ids, "conversations", two.into());
        let call = json!({"tool": "echo", "arguments": {"text": text}, "conversation": erased});
        json_of(self.http.request(Method::POST, "/v1/calls").header("prefer", "wait=30").json(&call)).await;
        let erasure = json_of(self.http.request(Method::DELETE, &format!("/v1/conversations/{erased}"))).await;
        add(&mut ids, "erasures", erasure["erasure"].clone());
        add(&mut ids, "functions", self.waiting_function().await);
        add(&mut ids, "rejected", self.rejected(text).await);
        ids
    }

    /// The newest call of a function whose client has not answered yet.
    async fn waiting_function(&self) -> Value {
        let calls = json_of(self.http.request(Method::GET, "/v1/calls?state=client_wait")).await;
        calls.pointer("/calls/0/call").cloned().unwrap_or_else(|| panic!("no function waits: {calls}"))
    }

    /// The number of a submission without a reply that was rejected.
    async fn rejected(&self, text: &str) -> Value {
        let subject = intake(self.queue.tenant(), self.queue.user(), UserRole::Submit, Intake::Calls);
        self.queue.put(&subject, &json!({"tool": "echo", "argument": text})).await.unwrap();
        until("it is rejected", async || {
            let list = json_of(self.http.request(Method::GET, "/v1/rejected")).await;
            let newest = list["rejected"].get(0).filter(|item| item.to_string().contains(text))?;
            Some(newest["id"].clone())
        })
        .await
    }

    /// Everything that it has on record, as its lists show it.
    async fn record(&self) -> Vec<Value> {
        until("its redrive has ended", async || {
            let list = json_of(self.http.request(Method::GET, "/v1/redrives")).await;
            list["redrives"].as_array()?.iter().all(|redrive| !redrive["finished_at"].is_null()).then_some(())
        })
        .await;
        let mut record = Vec::new();
        for list in ["calls", "tasks", "conversations", "redrives", "rejected", "webhooks", "tokens", "actions"] {
            let mut shown = json_of(self.http.request(Method::GET, &format!("/v1/{list}"))).await;
            // The token that asks is used.
            for token in shown["tokens"].as_array_mut().into_iter().flatten() {
                token["last_used_at"].take();
            }
            record.push(shown);
        }
        record
    }
}

/// The body of an answer that must be good.
async fn json_of(request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let (status, url, body) = (answer.status(), answer.url().clone(), answer.json::<Value>().await.unwrap());
    assert!(status.is_success(), "{url}: {status}: {body}");
    body
}

fn add(ids: &mut Value, resource: &str, id: Value) {
    let mut known = ids[resource].as_array().cloned().unwrap_or_default();
    known.push(id);
    ids[resource] = known.into();
}
