//! A scene with calls, tasks and what else is on record in each of their states: what samples of records are made of.

use std::time::Duration;

use redial_proto::{
    ANY_POOL, AgentRef, AgentSpec, CallState, ClaimId, ClaimJob, ClaimReply, ClaimRequest, ContractRange,
    CreateRedrive, CreateWebhook, FunctionSpec, RedriveFilter, RedriveId, RedriveView, Registered, Registration,
    RetryOverride, Submission, TaskSubmission, ToolEffect, ToolSpec, UserRole, WebhookEvent, WebhookSecret, WorkerId,
    WorkerIdentity,
    subjects::{self, ControlVerb, Intake, Verb},
    tool::any_object,
};
use redial_testkit::{Reply, ScriptedHttp, Stack, arguments, scripted_tool, token, unique_path, until, until_within};
use redial_worker::Tool;
use serde_json::{Value, json};
use uuid::Uuid;

const ANSWER: Duration = Duration::from_secs(25);

/// Plays the scene until everything of it is on record.
pub(crate) async fn play() -> Stack {
    let mut stack = Stack::start().await;
    stack.work(tools(&stack)).await;
    let models = serve_models(&mut stack, conversation()).await;
    webhook(&stack).await;
    tasks(&stack).await;
    calls(&stack).await;
    let garbage = subjects::intake(stack.queue().tenant(), stack.queue().user(), UserRole::Submit, Intake::Calls);
    stack.queue().put(&garbage, &json!({"tool": 7})).await.unwrap();
    token(stack.queue(), &[UserRole::Submit, UserRole::Read]).await;
    for (what, question) in [
        ("a dead letter", "SELECT count(*) FROM dead_letters"),
        ("statistics", "SELECT count(*) FROM call_stats"),
        ("events of webhooks", "SELECT count(*) FROM webhook_events"),
        ("redrives that ended", "SELECT count(*) FROM redrives WHERE finished_at IS NOT NULL"),
    ] {
        until_within(Duration::from_mins(3), what, async || {
            let found: i64 = sqlx::query_scalar(question).fetch_one(stack.db()).await.unwrap();
            (found > 0).then_some(())
        })
        .await;
    }
    // Last, because its lease is short.
    of_a_worker_that_is_gone(&stack).await;
    drop(models);
    stack
}

/// The tools of the scene, as workers of later versions have them, too.
pub(crate) fn tools(stack: &Stack) -> Vec<Tool> {
    vec![
        scripted_tool("tool", ToolEffect::Idempotent, &stack.ledger),
        scripted_tool("once", ToolEffect::Unsafe, &stack.ledger),
    ]
}

/// Serves the model `small`, with these answers; the last one is repeated.
pub(crate) async fn serve_models(stack: &mut Stack, answers: Vec<Reply>) -> ScriptedHttp {
    let server = ScriptedHttp::start().await;
    server.script("/small/chat/completions", answers);
    let models = unique_path("models");
    let text = format!(
        "[models.small]\nprovider = \"openai\"\nmodel = \"scripted-1\"\nbase_url = \"{}\"\nstream = false\ninput_price = 1.0\n\
         output_price = 10.0\n",
        server.url("/small")
    );
    std::fs::write(&models, text).unwrap();
    stack.serve_models(&models).await;
    server
}

/// An answer of a model.
pub(crate) fn says(text: &str) -> Reply {
    completion(&json!({"role": "assistant", "content": text}), "stop")
}

fn asks(tool: &str, arguments: &str) -> Reply {
    let call = json!({"id": "call_0", "type": "function", "function": {"name": tool, "arguments": arguments}});
    completion(&json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
}

fn completion(message: &Value, finish: &str) -> Reply {
    let body = json!({
        "id": "1", "object": "chat.completion", "model": "scripted-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    });
    Reply::json(&body.to_string())
}

/// A task that is corrected, repaired and answered; one whose client is asked.
fn conversation() -> Vec<Reply> {
    vec![
        asks("Tool", "{'fail': 'business_rule',}"),
        asks("tool", "{\"n\": \"2\"}"),
        asks("tool", "{\"n\": 3}"),
        says("Done."),
        asks("ask_user", "{\"question\": \"Which day?\"}"),
    ]
}

/// Asks the client whose task it is.
fn agent() -> AgentSpec {
    let function =
        FunctionSpec { name: "ask_user".to_owned(), description: "Asks.".to_owned(), parameters: any_object() };
    AgentSpec {
        tools: vec!["tool".to_owned()],
        functions: vec![function],
        function_timeout_ms: Some(24 * 3600 * 1000),
        system: "You book trips.".to_owned(),
        ..AgentSpec::new("small")
    }
}

/// One task that was answered, one that waits for its client, and one that waits for that one.
async fn tasks(stack: &Stack) {
    let task = |input: &str, conversation: &str| TaskSubmission {
        conversation: Some(conversation.to_owned()),
        ..TaskSubmission::new(input, AgentRef::Inline(Box::new(agent())))
    };
    let answered = stack.task(&task("A trip to Paris.", "trip-1")).await;
    stack.task_ended(answered).await;
    stack.task(&task("Another trip.", "trip-2")).await;
    until("the client is asked", async || {
        let asked: i64 = sqlx::query_scalar("SELECT count(*) FROM calls WHERE state = 'client_wait'")
            .fetch_one(stack.db())
            .await
            .unwrap();
        (asked == 1).then_some(())
    })
    .await;
    stack.task(&task("And back.", "trip-2")).await;
    let cancelled = stack.task(&task("Never mind.", "trip-2")).await;
    stack.cancel_task(cancelled).await;
    stack.task_ended(cancelled).await;
}

/// A call in each state in which it needs no worker.
async fn calls(stack: &Stack) {
    let keyed = Submission { key: Some("order-17".to_owned()), ..Submission::new("tool", arguments(json!({"n": 1}))) };
    let succeeded = stack.accepted(&Submission { notify: true, ..keyed }).await;
    stack.ended(succeeded).await;
    let failed = stack.call("tool", json!({"fail": "auth"})).await;
    stack.ended(failed).await;
    stack.redrive(failed).await;
    let unknown = stack.call("once", json!({"fail": "unavailable"})).await;
    assert_eq!(stack.ended(unknown).await.state, CallState::Unknown);
    stack.submit(&Submission::new("no_such_tool", arguments(json!({})))).await;
    let patient = RetryOverride { deadline_ms: Some(24 * 3600 * 1000), ..RetryOverride::default() };
    for is_cancelled in [false, true] {
        let fails = arguments(json!({"fail": "unavailable", "times": 1, "retry_after_ms": 3_600_000}));
        let call = stack.accepted(&Submission { retry: Some(patient), ..Submission::new("tool", fails) }).await;
        stack.is(call, CallState::RetryWait).await;
        if is_cancelled {
            stack.cancel(call).await;
        }
    }
    let filter =
        RedriveFilter { tool: Some("tool".to_owned()), state: Some(CallState::Failed), ..RedriveFilter::default() };
    let create = CreateRedrive { redrive: RedriveId::generate(), filter, dry_run: true, rate: None, at_most: None };
    let _: RedriveView = stack.queue().ask(Verb::RedriveCreate, &create, ANSWER).await.unwrap();
}

/// A call that runs on a worker which is gone, and one that waits for a worker.
async fn of_a_worker_that_is_gone(stack: &Stack) {
    let identity = WorkerIdentity::of_name("gone");
    let worker = WorkerId::generate(&identity);
    let registration = Registration {
        worker: worker.clone(),
        started_at: chrono::Utc::now(),
        slots: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        contract: ContractRange::OURS,
        host: Some("desk".to_owned()),
        packs: true,
        tools: vec![ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("later") }],
        other_tools: std::collections::BTreeMap::new(),
    };
    let subject = |verb| subjects::control(&identity, ANY_POOL, verb);
    let _: Registered = stack.queue().request(&subject(ControlVerb::Register), &registration, ANSWER).await.unwrap();
    let running = stack.call("later", json!({})).await;
    stack.call("later", json!({})).await;
    let jobs = vec![ClaimJob { call: running, attempt: 1, tool: "later".to_owned() }];
    let claim = ClaimRequest { claim: ClaimId::generate(), worker, jobs, payloads: true, returned: Vec::new() };
    let reply: ClaimReply = stack.queue().request(&subject(ControlVerb::Claim), &claim, ANSWER).await.unwrap();
    assert_eq!(reply.grants.len(), 1);
}

async fn webhook(stack: &Stack) {
    let create = CreateWebhook {
        webhook: Uuid::now_v7(),
        url: "https://example.com/hook".to_owned(),
        events: vec![WebhookEvent::AnyCall, WebhookEvent::TaskSucceeded],
        tools: Vec::new(),
        agents: Vec::new(),
    };
    let _: WebhookSecret = stack.queue().ask(Verb::WebhookCreate, &create, ANSWER).await.unwrap();
}
