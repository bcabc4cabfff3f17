//! A gateway over a stack with the data of two tenants.

use redial_proto::{ApiToken, TokenCreate, TokenCreateReply, TokenExpiry, UserRole, subjects::Verb};
use redial_queue::Queue;
use redial_testkit::{Stack, TestGateway, unique_path};
use redial_tools::Tool;
use serde_json::{Value, json};

/// In everything that the other tenant has on record. The checker of the stack knows it as that tenant's, too.
pub(crate) const CANARY: &str = "canary-of-globex";
const ANSWER: std::time::Duration = std::time::Duration::from_secs(25);

pub(crate) struct Fixture {
    stack: Stack,
    pub(crate) gateway: TestGateway,
    /// Ids of both tenants, by resource.
    pub(crate) ids: Value,
    acme: Queue,
}

/// A token of the tenant of a connection.
async fn token(queue: &Queue, roles: &[UserRole]) -> String {
    let token = ApiToken::of_random(&std::array::from_fn(|_| rand::random()));
    let create = TokenCreate {
        id: token.id.clone(),
        sha256: token.hash(),
        tenant: None,
        user: None,
        roles: roles.to_vec(),
        label: None,
        expiry: TokenExpiry::default(),
    };
    let _: TokenCreateReply = queue.ask(Verb::TokenCreate, &create, ANSWER).await.unwrap();
    token.text()
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        // The library wants one, also for plain HTTP.
        redial_telemetry::install_crypto();
        let mut stack = Stack::start().await;
        stack.stop_dispatchers().await;
        let (agents, models, script) = (unique_path("agents"), unique_path("models"), unique_path("script"));
        std::fs::write(&agents, "[agents.travel]\nmodel = \"small\"\ntools = [\"*\"]\n").unwrap();
        std::fs::write(&script, "[[rule]]\ntext = \"Hello.\"\n").unwrap();
        let small = format!("[models.small]\nprovider = \"script\"\nscript = {:?}\n", script.display().to_string());
        std::fs::write(&models, small).unwrap();
        stack.agents = Some(agents);
        stack.dispatch().await;
        stack.work(vec![Tool::echo()]).await;
        stack.serve_models(&models).await;
        // What is submitted at random may wait for what never comes.
        stack.leaves_calls();
        let gateway = stack.serve_http_with(|_| {}).await;
        let acme = stack.user("acme", "alice").await;
        let globex = stack.user("globex", "bob").await;
        let mut ids = json!({"tools": ["echo"], "agents": ["travel"], "models": ["travel"], "errors": ["not_found"]});
        fill(&gateway, &token(&acme, &UserRole::ALL).await, "canary-of-acme", &mut ids).await;
        fill(&gateway, &token(&globex, &UserRole::ALL).await, CANARY, &mut ids).await;
        Self { stack, gateway, ids, acme }
    }

    /// A token of the tenant that asks.
    pub(crate) async fn token(&self, roles: &[UserRole]) -> String {
        token(&self.acme, roles).await
    }

    pub(crate) async fn finish(self) {
        drop(self.gateway);
        self.stack.finish().await;
    }
}

/// Puts something of each kind on record, with `text` in it. Ids have nothing of it.
async fn fill(gateway: &TestGateway, token: &str, text: &str, ids: &mut Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let talk = uuid::Uuid::now_v7().to_string();
    let webhook = format!("https://{text}.example/");
    for (resource, id, body) in [
        ("calls", "/call", json!({"tool": "echo", "arguments": {"text": text}, "key": text, "conversation": text})),
        ("tasks", "/task", json!({"input": text, "agent": "travel", "key": text, "conversation": talk})),
        ("responses", "/id", json!({"model": "travel", "input": text, "metadata": {"text": text}})),
        ("redrives", "/redrive", json!({"filter": {"tool": text}, "dry_run": true})),
        ("webhooks", "/webhook/webhook", json!({"url": webhook, "events": ["call.failed"], "tools": ["none"]})),
    ] {
        let request = client.post(format!("{}/v1/{resource}", gateway.url)).bearer_auth(token);
        let answer = request.header("prefer", "wait=30").json(&body).send().await.unwrap();
        let (status, answer) = (answer.status(), answer.json::<Value>().await.unwrap());
        let id = answer.pointer(id).cloned();
        assert!(status.is_success() && id.is_some(), "{resource}: {status}: {answer}");
        add(ids, resource, id.unwrap_or_default());
    }
    add(ids, "conversations", talk.into());
}

fn add(ids: &mut Value, resource: &str, id: Value) {
    let mut known = ids[resource].as_array().cloned().unwrap_or_default();
    known.push(id);
    ids[resource] = known.into();
}
