//! An older process beside newer ones: what they send and write is used as far as it can be read, and the rest is left to them.

use std::{process::Command, time::Duration};

use redial_proto::{
    ANY_POOL, AgentRef, AgentSpec, ApiError, CONTRACT, CallId, CallState, Code, CreateRedrive, ErrorClass, Failure,
    JobRef, RedriveFilter, RedriveId, RedriveState, RedriveView, Registered, Submission, TaskDecision, TaskInput,
    TaskState, TaskSubmission, Tenant, ToolEffect, ToolSpec, WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb, Verb},
};
use redial_queue::QueueError;
use redial_store::{Purpose, audit::TaskFilter};
use redial_testkit::{RawNats, Stack, arguments, scripted_tool, until};
use serde_json::{Value, json};

use super::{by_hand::Hand, fixture::dead_letters};

/// The header of messages of the next version.
fn newer() -> (&'static str, String) {
    (subjects::CONTRACT, (CONTRACT + 1).to_string())
}

async fn publish_newer(nats: &mut RawNats, subject: &str, message: &Value) {
    let (name, version) = newer();
    nats.publish_with(subject, (name, &version), message.to_string().as_bytes()).await;
}

/// Takes away what only a newer version would take.
async fn purge(nats: &mut RawNats, stream: &str) {
    nats.jetstream(&format!("STREAM.PURGE.{stream}"), &json!({})).await;
}

#[tokio::test]
async fn a_report_of_a_newer_version_is_left_to_it_and_the_others_are_taken() {
    let stack = Stack::start_leasing(Duration::from_secs(30)).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let (odd, other) = (stack.call("tool", json!({})).await, stack.call("tool", json!({})).await);
    for _ in 0..2 {
        worker.granted().await;
    }
    let report = |call: CallId, class: &str| {
        json!({
            "call": call, "attempt": 1, "claim": worker.claim_of(call, 1), "duration_ms": 1, "mood": "calm",
            "error": {"class": class, "message": "no", "mood": "calm"},
        })
    };
    let batch = json!({"worker": worker.id, "rack": 7, "reports": [report(odd, "tired"), report(other, "auth")]});
    let mut nats = stack.raw_nats().await;
    publish_newer(&mut nats, &worker.results(), &batch).await;
    publish_newer(&mut nats, &worker.results(), &json!({"reports_of_the_next_version": []})).await;
    worker.ingested(JobRef { call: other, attempt: 1 }).await;
    assert_eq!(stack.ended(other).await.class, Some(ErrorClass::Auth));
    assert_eq!((nats.messages("RESULTS").await, stack.get(odd).await.state), (2, CallState::Running));
    assert!(dead_letters(&stack, "results", 0).await.is_empty());
    // What a newer dispatcher would do.
    worker.report(odd, 1, Err(Failure::new(ErrorClass::Auth, "no"))).await;
    assert_eq!(stack.ended(odd).await.state, CallState::Failed);
    purge(&mut nats, "RESULTS").await;
    stack.finish().await;
}

#[tokio::test]
async fn a_job_of_a_newer_version_is_left_to_it_and_keeps_no_other_waiting() {
    let mut stack = Stack::start_leasing(Duration::from_secs(30)).await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let (mut nats, subject) = (stack.raw_nats().await, subjects::job("default", "tool"));
    publish_newer(&mut nats, &subject, &json!({"batch_of_the_next_version": []})).await;
    nats.publish(&subject, b"{\"no\": \"job\"}").await;
    let known = stack.call("tool", json!({})).await;
    stack.output(known).await;
    until("what is wrong is discarded", async || (nats.messages("JOBS").await == 1).then_some(())).await;
    // With fields that this version does not know, it is a job.
    let call = stack.call("tool", json!({"n": 2})).await;
    publish_newer(&mut nats, &subject, &json!({"call": call, "attempt": 1, "tool": "tool", "priority": 3})).await;
    stack.output(call).await;
    until("only what cannot be read is left", async || (nats.messages("JOBS").await == 1).then_some(())).await;
    purge(&mut nats, "JOBS").await;
    stack.finish().await;
}

fn registration(worker: &WorkerId) -> Value {
    let tool = json!({"name": "tool", "effect": "read", "priority": 3, "retry": {"max_attempts": 2, "jitter": "none"}});
    json!({
        "worker": worker, "started_at": "2026-11-26T08:00:00Z", "slots": 1, "version": "9.0.0", "rack": 7,
        "contract": {"oldest": 1, "newest": CONTRACT + 1}, "tools": [tool],
    })
}

#[tokio::test]
async fn a_newer_worker_is_registered_if_the_versions_overlap_and_refused_in_clear_words_otherwise() {
    let stack = Stack::start().await;
    let identity = WorkerIdentity::of_name("manual");
    let (worker, subject) =
        (WorkerId::generate(&identity), subjects::control(&identity, ANY_POOL, ControlVerb::Register));
    let ask = async |registration: Value| {
        stack.queue().request::<_, Registered>(&subject, &registration, Duration::from_secs(25)).await
    };
    let registered = ask(registration(&worker)).await.unwrap();
    assert_eq!((registered.contract, registered.consumers.len()), (CONTRACT, 1), "the overlap");
    let store = stack.store(Purpose::Audit).await;
    assert_eq!(store.tools().await.unwrap()[0].retry.max_attempts, 2);
    for (oldest, newest, words) in
        [(CONTRACT + 1, CONTRACT + 2, "replace the dispatchers first"), (0, 0, "the worker is too old")]
    {
        let mut other = registration(&worker);
        other["contract"] = json!({"oldest": oldest, "newest": newest});
        let refused = match ask(other).await {
            Err(QueueError::Api(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(refused.code == Code::IncompatibleVersion && refused.message.contains(words), "{refused}");
    }
    let mut of_first = registration(&worker);
    of_first.as_object_mut().unwrap().remove("contract");
    assert_eq!(ask(of_first).await.unwrap().contract, 1, "whoever names no version is of the first one");
    stack.finish().await;
}

#[tokio::test]
async fn a_request_that_only_a_newer_dispatcher_can_read_may_be_sent_again() {
    let stack = Stack::start().await;
    let identity = WorkerIdentity::of_name("manual");
    let (mut nats, worker) = (stack.raw_nats().await, WorkerId::generate(&identity));
    let subject = subjects::control(&identity, ANY_POOL, ControlVerb::Register);
    let mut odd = registration(&worker);
    odd["tools"][0]["effect"] = json!("quantum");
    let (name, version) = newer();
    let error: ApiError =
        serde_json::from_slice(&nats.request_with(&subject, (name, &version), odd.to_string().as_bytes()).await)
            .unwrap();
    assert!(error.code == Code::Unavailable && error.message.contains("quantum"), "{error}");
    let error: ApiError = serde_json::from_slice(&nats.request(&subject, odd.to_string().as_bytes()).await).unwrap();
    assert_eq!(error.code, Code::InvalidMessage, "a worker of the same version has made a mistake");
    stack.finish().await;
}

/// What is written from now on has this in it, as if a newer dispatcher wrote it.
async fn writes_more(stack: &Stack, table: &str, column: &str, more: &Value, which: &str) {
    let statement = format!(
        "CREATE FUNCTION more_{column}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             NEW.{column} := (NEW.{column}::jsonb || '{more}')::json; RETURN NEW; END $$;
         CREATE TRIGGER more_{column} BEFORE INSERT ON {table} FOR EACH ROW WHEN ({which}) EXECUTE FUNCTION more_{column}()"
    );
    run(stack, &statement).await;
}

/// A dispatcher may lock the same tables in another order, so a statement may be chosen to end a deadlock.
async fn run(stack: &Stack, statement: &str) {
    let again = || sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned()));
    until("no deadlock ends the statement", async || match again().execute(stack.db()).await {
        Ok(_) => Some(()),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40P01") => None,
        Err(error) => panic!("{error}: {statement}"),
    })
    .await;
}

fn task(input: &str) -> TaskSubmission {
    TaskSubmission::new(input, AgentRef::Inline(Box::new(AgentSpec::new("small"))))
}

/// A model that always says the same.
fn model() -> redial_worker::Tool {
    redial_worker::Tool::new("small", |_: Value| async {
        Ok::<_, redial_worker::ToolError>(json!({"text": "Done.", "mood": "calm", "finish": "bored"}))
    })
}

#[tokio::test]
async fn a_task_of_a_newer_version_goes_on_or_is_left_to_it_and_holds_up_no_other() {
    let mut stack = Stack::start().await;
    stack.play_models(vec![model()]).await;
    writes_more(
        &stack,
        "tasks",
        "spec",
        &json!({"mood": "calm", "budgets": {"turns": 3, "joules": 9}}),
        "NEW.input = 'fields'",
    )
    .await;
    let fields = stack.task(&task("fields")).await;
    assert_eq!(stack.task_ended(fields).await.task.state, TaskState::Succeeded);
    run(&stack, "DROP TRIGGER more_spec ON tasks; DROP FUNCTION more_spec").await;
    writes_more(&stack, "tasks", "spec", &json!({"policy": "quantum"}), "NEW.input IN ('values', 'cancelled')").await;
    let (values, cancelled, other) =
        (stack.task(&task("values")).await, stack.task(&task("cancelled")).await, stack.task(&task("other")).await);
    assert_eq!(stack.task_ended(other).await.task.state, TaskState::Succeeded);
    assert_eq!(stack.task_report(values).await.task.state, TaskState::Waiting, "it is left to a newer version");
    // Its user need not wait for that version.
    stack.cancel_task(cancelled).await;
    let cancelled = stack.task_ended(cancelled).await.task;
    assert!(cancelled.state == TaskState::Cancelled && cancelled.message.unwrap().contains("cannot read it"));
    run(&stack, "UPDATE tasks SET spec = (spec::jsonb - 'policy')::json WHERE input = 'values'").await;
    assert_eq!(stack.task_ended(values).await.task.state, TaskState::Succeeded);
    stack.finish().await;
}

#[tokio::test]
async fn what_a_newer_version_wrote_is_shown_as_unknown_and_fails_no_page() {
    let mut stack = Stack::start().await;
    stack.play_models(vec![model()]).await;
    let (odd, good) = (stack.task(&task("odd")).await, stack.task(&task("good")).await);
    for task in [odd, good] {
        stack.task_ended(task).await;
    }
    let refused = stack.submit(&Submission::new("no_such_tool", arguments(json!({})))).await;
    let call = refused.call.unwrap();
    run(
        &stack,
        "ALTER TABLE tasks DROP CONSTRAINT tasks_state_check, DROP CONSTRAINT IF EXISTS tasks_check;
         ALTER TABLE tasks DISABLE TRIGGER ALL;
         UPDATE tasks SET state = 'paused' WHERE input = 'odd';
         UPDATE task_steps SET decisions = (decisions::jsonb || '[{\"decision\": \"prayed\"}]')::json,
             input = '{\"event\": \"dreamed\", \"of\": \"sheep\"}' WHERE n = 1;
         ALTER TABLE calls DROP CONSTRAINT IF EXISTS calls_class_check;
         ALTER TABLE calls DISABLE TRIGGER ALL;
         UPDATE calls SET class = 'tired', repairs = '[{\"kind\": \"prayer\", \"before\": \"\", \"after\": \"\"}]' WHERE state = 'refused'",
    )
    .await;
    let store = stack.store(Purpose::Audit).await;
    let states: Vec<TaskState> =
        store.tasks(&TaskFilter::default(), 10).await.unwrap().into_iter().map(|task| task.state).collect();
    assert_eq!(states, [TaskState::Succeeded, TaskState::Other]);
    let report = stack.task_report(odd).await;
    assert_eq!((report.task.state, &report.steps[0].input), (TaskState::Other, &TaskInput::Unknown));
    assert!(matches!(report.steps[0].decisions.as_slice(), [.., TaskDecision::Unknown]), "{:?}", report.steps[0]);
    assert!(report.steps.len() > 1 && report.messages.len() > 1, "the rest is as it is");
    let view = stack.get(call).await;
    assert_eq!((view.state, view.class, view.repairs.len()), (CallState::Refused, None, 0));
    let own = Tenant::default();
    let conversations = store.of(&own).conversations(None, 10).await.unwrap().conversations;
    assert_eq!(conversations.len(), 2);
    run(&stack, "UPDATE tasks SET state = 'succeeded' WHERE state = 'paused'; UPDATE calls SET class = 'unknown_tool' WHERE class = 'tired'").await;
    stack.finish().await;
}

#[tokio::test]
async fn a_redrive_with_a_condition_of_a_newer_version_runs_nothing_and_is_left_to_it() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let failed = stack.call("tool", json!({"fail": "auth"})).await;
    stack.ended(failed).await;
    writes_more(&stack, "redrives", "filter", &json!({"planet": "Mars"}), "true").await;
    let filter = RedriveFilter { tool: Some("tool".to_owned()), ..RedriveFilter::default() };
    let create = CreateRedrive { redrive: RedriveId::generate(), filter, dry_run: false, rate: None, at_most: None };
    let _: RedriveView = stack.queue().ask(Verb::RedriveCreate, &create, Duration::from_secs(25)).await.unwrap();
    until("a dispatcher looked at it", async || {
        let taken: Option<uuid::Uuid> =
            sqlx::query_scalar("SELECT taken_by FROM redrives").fetch_one(stack.db()).await.unwrap();
        taken
    })
    .await;
    let (store, own) = (stack.store(Purpose::Audit).await, Tenant::default());
    let state = async || store.of(&own).redrive(create.redrive).await.unwrap().unwrap().state;
    assert_eq!(state().await, RedriveState::Counting, "it did not fail");
    run(&stack, "UPDATE redrives SET filter = (filter::jsonb - 'planet')::json, next_at = clock_timestamp()").await;
    until("it ends once it can be read", async || (state().await == RedriveState::Done).then_some(())).await;
    stack.finish().await;
}

#[test]
fn a_program_says_its_versions() {
    let output = Command::new(env!("CARGO_BIN_EXE_redial")).args(["version", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let contract = json!({"newest": CONTRACT, "oldest": redial_proto::OLDEST_CONTRACT});
    assert_eq!(
        said,
        json!({"version": env!("CARGO_PKG_VERSION"), "contract": contract, "records": redial_store::RECORDS})
    );
}
