//! A tenant is a wall: what belongs to another one does not exist.

use redial_proto::{
    CallId, CallView, CancelReply, CancelRequest, Code, GetRequest, Language, RedriveReply, RedriveRequest, Submission,
    SubmitResult, SubmitStatus, TaskCancel, TaskCancelReply, TaskGet, TaskId, TaskReport, TaskResult, TaskState,
    TaskSubmission, TurnRequest, UserRole,
    subjects::{self, Intake, Verb},
};
use redial_queue::{Queue, QueueError};
use redial_test_stack::{Stack, arguments, file};
use redial_tools::{Tool, ToolError};
use serde_json::{Value, json};

use super::fixture::{ANSWER, ask, dead_letters};

async fn submitted(queue: &Queue, submission: &Submission) -> SubmitResult {
    ask(queue, Verb::CallSubmit, submission).await.unwrap()
}

fn keyed(key: &str, n: u32) -> Submission {
    let mut submission = Submission::new("echo", arguments(json!({ "secret": format!("of acme {n}") })));
    (submission.key, submission.conversation, submission.notify) = (Some(key.to_owned()), Some("c".to_owned()), true);
    submission
}

#[tokio::test]
async fn another_tenants_calls_and_tasks_do_not_exist() {
    let mut stack = Stack::with_echo().await;
    let model = Tool::new("small", |request: TurnRequest| async move {
        Ok::<_, ToolError>(json!({"text": format!("I read {} messages", request.messages.len())}))
    });
    stack.play_models(vec![model]).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    // Two conversations with the same id.
    let mut tasks = Vec::new();
    for user in [&acme, &globex] {
        let result: TaskResult =
            user.ask_as(UserRole::Inline, Verb::TaskSubmit, &inline("hello"), ANSWER).await.unwrap();
        tasks.push(result.task.unwrap());
        stack.task_is(tasks[tasks.len() - 1], |state| state == TaskState::Succeeded).await;
    }
    let answers: Vec<String> = stack.values("SELECT answer FROM tasks").await;
    assert_eq!(answers, ["I read 1 messages", "I read 1 messages"]);
    let task = tasks[0];
    for hidden in [task, TaskId::generate()] {
        let get = ask::<TaskReport>(&globex, Verb::TaskGet, &TaskGet { task: hidden, after_step: 0 }).await;
        let cancel = ask::<TaskCancelReply>(&globex, Verb::TaskCancel, &TaskCancel { task: hidden }).await;
        for error in [get.unwrap_err(), cancel.unwrap_err()] {
            assert_eq!(error.code, Code::TaskNotFound);
        }
    }
    let call = submitted(&acme, &keyed("k", 1)).await.call.unwrap();
    stack.wait_for_end(call).await;
    let unknown = CallId::generate();
    for other in [call, unknown] {
        let get = GetRequest { call: other, language: Language::En };
        let get = ask::<CallView>(&globex, Verb::CallGet, &get).await;
        let cancel = ask::<CancelReply>(&globex, Verb::CallCancel, &CancelRequest { call: other }).await;
        for error in [get.unwrap_err(), cancel.unwrap_err()] {
            // The same words for what belongs to others and for what nobody has.
            assert_eq!(error.to_string(), format!("no call {other} is on record [call_not_found]"));
        }
        let redrive: RedriveReply =
            ask(&globex, Verb::CallRedrive, &RedriveRequest::unchanged(vec![other])).await.unwrap();
        let result = &redrive.results[0];
        assert_eq!((result.status, result.error.as_ref().unwrap().code), (SubmitStatus::Rejected, Code::CallNotFound));
    }
    // A key of another tenant is free, and a conflict never names another tenant's call.
    let same = submitted(&globex, &keyed("k", 2)).await;
    assert_eq!(same.status, SubmitStatus::Accepted);
    let conflict = submitted(&globex, &keyed("k", 3)).await.error.unwrap();
    assert!(conflict.message.contains(&same.call.unwrap().to_string()), "{conflict}");
    assert!(!conflict.message.contains(&call.to_string()), "{conflict}");
    let stream = br#"{"tool":"echo","arguments":{},"key":"stream"}"#.as_slice();
    acme.put_intake(Intake::Calls, stream.into(), None).await.unwrap();
    let of_stream = "calls WHERE key = 'stream' AND tenant = 'acme' AND submitted_by = 'alice'";
    stack.counts(1, of_stream).await;
    for who in ["tenant = 'acme' AND submitted_by = 'alice'", "tenant = 'globex' AND submitted_by = 'bob'"] {
        assert_eq!(stack.count(&format!("calls WHERE key = 'k' AND {who}")).await, 1, "{who}");
    }
    stack.drained(ANSWER).await;
    stack.finish().await;
}

fn inline(input: &str) -> TaskSubmission {
    let task = json!({"input": input, "agent": {"model": "small"}, "conversation": "c"});
    serde_json::from_value(task).unwrap()
}

#[tokio::test]
async fn roles_are_checked_by_the_dispatcher() {
    let stack = Stack::with_echo().await;
    let user = stack.user("acme", "alice").await;
    let body = json!({
        "tool": "echo", "arguments": {}, "call": CallId::generate(), "calls": [], "task": TaskId::generate(), "agent": "a", "input": "x",
    });
    for &verb in Verb::ALL {
        for role in UserRole::ALL.into_iter().filter(|role| !verb.roles().contains(role)) {
            let answer: Result<Value, QueueError> = user.ask_as(role, verb, &body, ANSWER).await;
            let code = match answer {
                Err(QueueError::Api(error)) => error.code,
                Ok(answer) => serde_json::from_value(answer["error"]["code"].clone()).expect("an error"),
                Err(error) => panic!("{role} {verb:?}: {error}"),
            };
            assert_eq!(code, Code::Forbidden, "{role} {verb:?}");
        }
    }
    // On the intake stream, where nobody is answered, the dead letter says it.
    let subject = subjects::intake(user.tenant(), user.user(), UserRole::Read, Intake::Calls);
    user.put(&subject, &json!({"tool": "echo", "arguments": {}})).await.unwrap();
    let kept = dead_letters(&stack, "intake", 1).await;
    assert_eq!(kept[0].0, "forbidden");
    // An agent of one's own needs its own role.
    let result: TaskResult = user.ask(Verb::TaskSubmit, &inline("x"), ANSWER).await.unwrap();
    assert_eq!(result.error.unwrap().code, Code::Forbidden);
    assert_eq!(stack.count("calls").await, 0);
    stack.finish().await;
}

/// The dispatcher would publish the reply with its own rights.
#[tokio::test]
async fn a_request_that_wants_its_reply_elsewhere_is_discarded() {
    let stack = Stack::with_echo().await;
    let mut nats = stack.raw_nats().await;
    let subject = "redial.api.acme.alice.submit.calls.submit";
    let others =
        ["redial.jobs.default.echo", "$JS.API.STREAM.PURGE.JOBS", "redial.worker.w.w-1", "_INBOX_client.acme.bob.x"];
    for (n, reply) in others.into_iter().enumerate() {
        let mut heard = stack.queue().subscribe(reply).await.unwrap();
        stack.queue().flush().await;
        let body = json!({"tool": "echo", "arguments": {}, "key": format!("k{n}")}).to_string();
        nats.send(subject, reply, "", &body).await;
        // A request after it on the same connection is answered; by then the first one would have been.
        nats.request(subject, br#"{"tool":"echo","arguments":{},"key":"good"}"#).await;
        heard.skip_arrived();
        let keys: Vec<String> = stack.values("SELECT key FROM calls").await;
        assert_eq!(keys, ["good"], "{reply}");
    }
    stack.drained(ANSWER).await;
    stack.finish().await;
}

/// What `acme` may use: the file names no other tenant.
const ACCESS: &str = r#"
dispatcher.password = "$X"
[tenants.acme]
tools = ["ec*", "othe"]
models = ["small"]
agents = []
budgets.turns = 3
users.alice = { roles = ["submit"], password = "$X" }
"#;

/// Calls that ended while the tenant had other limits, and the turn of a model.
async fn redrives_keep_to_the_limits(stack: &Stack, acme: &Queue) {
    for (tool, code) in [("other", Code::Forbidden), ("model-small", Code::WrongState)] {
        let call = CallId::generate();
        let ended = format!(
            "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                                published_at, finished_at, state, class)
             VALUES ('{call}', now(), now(), 1, false, '{tool}', 'default', 'read', 'acme', '{{}}', now(), now(), 'failed', 'auth')"
        );
        stack.execute(&ended).await;
        let redrive: RedriveReply = ask(acme, Verb::CallRedrive, &RedriveRequest::unchanged(vec![call])).await.unwrap();
        assert_eq!(redrive.results[0].error.as_ref().map(|error| error.code), Some(code), "{tool}");
        assert_eq!(stack.count("calls WHERE redrive_of IS NOT NULL").await, 0, "{tool}");
        stack.execute("DELETE FROM calls WHERE state = 'failed'").await;
    }
}

#[tokio::test]
async fn a_tenant_stays_within_what_the_access_file_allows() {
    let mut stack = Stack::start_with(|stack| stack.dispatcher.access = Some(file("access", ACCESS))).await;
    let named = |name: &str| Tool::new(name, |value: Value| async move { Ok::<_, ToolError>(value) });
    stack.work(vec![Tool::echo(), named("other")]).await;
    stack.play_models(vec![named("small"), named("large")]).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let call = async |queue: &Queue, tool: &str| {
        let result = submitted(queue, &Submission::new(tool, arguments(json!({})))).await;
        result.error.map(|error| error.code)
    };
    assert_eq!(call(&acme, "echo").await, None);
    assert_eq!(call(&acme, "other").await, Some(Code::Forbidden));
    assert_eq!(call(&globex, "echo").await, Some(Code::Forbidden), "a tenant that the file does not name");
    assert_eq!(call(&acme, "model-small").await, Some(Code::Forbidden), "models are asked by tasks only");

    // An error suggests only what the tenant may use.
    let unknown = submitted(&acme, &Submission::new("othe", arguments(json!({})))).await.error.unwrap();
    assert!(unknown.code == Code::UnknownTool && !unknown.message.contains("other"), "{unknown}");
    let unknown = submitted(&acme, &Submission::new("ecko", arguments(json!({})))).await.error.unwrap();
    assert!(unknown.message.contains("did you mean \"echo\"?"), "{unknown}");

    let task = async |agent: Value| {
        let role = if agent.is_string() { UserRole::Submit } else { UserRole::Inline };
        let task = json!({"input": "x", "agent": agent});
        let result: TaskResult = acme.ask_as(role, Verb::TaskSubmit, &task, ANSWER).await.unwrap();
        result.task.ok_or_else(|| result.error.unwrap().to_string())
    };
    for (agent, says) in [
        (json!("support"), "may not use the agent"),
        (json!({"model": "small", "fallback_model": "large"}), "may not use the model"),
        (json!({"model": "small", "tools": ["other"]}), "may not use the tool"),
        (json!({"model": "small", "budgets": {"turns": 4}}), "budgets.turns is 4; allowed: at most 3"),
    ] {
        let error = task(agent).await.unwrap_err();
        assert!(error.contains(says) && error.contains("[forbidden]"), "{error}");
    }
    redrives_keep_to_the_limits(&stack, &acme).await;
    // What was not set is bound, and a pattern means only what the tenant may use.
    let task = task(json!({"model": "small", "tools": ["*"]})).await.unwrap();
    let spec: Value = stack.value(&format!("SELECT spec FROM tasks WHERE id = '{task}'")).await;
    assert_eq!((&spec["budgets"]["turns"], &spec["tools"]), (&json!(3), &json!(["echo"])), "{spec}");
    stack.task_is(task, TaskState::is_terminal).await;
    stack.wait_until_empty().await;
    stack.finish().await;
}
