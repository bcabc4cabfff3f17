//! Two versions side by side: what one of them sends or writes is used by the other as far as it can be read, and the rest is left.

use std::{process::Command, time::Duration};

use redial_proto::{
    ANY_POOL, AgentRef, AgentSpec, ApiError, CONTRACT, CallState, Code, CreateRedrive, RedriveFilter, RedriveId,
    RedriveState, RedriveView, Registered, Submission, TaskDecision, TaskInput, TaskState, TaskSubmission, Tenant,
    ToolEffect, ToolSpec, WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb, Verb},
};
use redial_store::{Purpose, audit::TaskFilter};
use redial_test_stack::{Received, Stack, arguments, scripted_tool, until};
use redial_tools::{Tool, ToolError};
use serde_json::{Value, json};

use super::{
    by_hand::Hand,
    fixture::{ANSWER, api, ask, dead_letters},
};

fn registration(worker: &WorkerId, contract: u32) -> Value {
    let tool = json!({"name": "tool", "effect": "read", "priority": 3, "retry": {"max_attempts": 2, "jitter": "none"}});
    json!({
        "worker": worker, "started_at": "2026-11-26T08:00:00Z", "slots": 1, "version": "9.0.0", "rack": 7,
        "contract": contract, "tools": [tool],
    })
}

/// This build, and the same with the next number: it stands for the next version.
#[tokio::test]
async fn two_versions_work_together_and_the_newer_one_takes_what_the_older_one_cannot_read() {
    let mut stack = Stack::start_leasing(Duration::from_secs(30)).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let (odd, other) = (stack.call("tool", json!({})).await, stack.call("tool", json!({})).await);
    for _ in 0..2 {
        worker.granted().await;
    }
    let report = |call, class: &str| {
        json!({
            "call": call, "attempt": 1, "claim": worker.claim_of(call, 1), "duration_ms": 1, "mood": "calm",
            "error": {"class": class, "message": "no", "mood": "calm"},
        })
    };
    let batch = json!({"worker": worker.id, "rack": 7, "reports": [report(odd, "tired"), report(other, "auth")]});
    let (mut nats, next) = (stack.raw_nats().await, (CONTRACT + 1).to_string());
    let newer = (subjects::CONTRACT, next.as_str());
    nats.publish_with(&worker.results(), newer, batch.to_string().as_bytes()).await;
    // What can be read of it is taken; the message stays for whoever can read the rest.
    assert_eq!(stack.ended(other).await.state, CallState::Failed);
    assert_eq!((nats.messages("RESULTS").await, stack.get(odd).await.state), (1, CallState::Running));
    assert!(dead_letters(&stack, "results", 0).await.is_empty());

    // A request that only a newer dispatcher can read may be sent again; the same of a worker of this version is wrong.
    let subject = subjects::control(&WorkerIdentity::of_name("manual"), ANY_POOL, ControlVerb::Register);
    let mut quantum = registration(&worker.id, CONTRACT);
    quantum["tools"][0]["effect"] = json!("quantum");
    let quantum = quantum.to_string();
    let error = |reply: Received| serde_json::from_str::<ApiError>(&reply.body).unwrap().code;
    assert_eq!(error(nats.request_with(&subject, newer, quantum.as_bytes()).await), Code::Unavailable);
    assert_eq!(error(nats.request(&subject, &quantum).await), Code::InvalidMessage);

    // Fields that a version does not know are ignored; a neighbour is registered, and nobody beyond.
    let register = async |contract: u32| {
        let registration = registration(&WorkerId::generate(&WorkerIdentity::of_name("manual")), contract);
        api(stack.queue().request::<_, Registered>(&subject, &registration, ANSWER).await)
    };
    register(CONTRACT + 1).await.unwrap();
    assert_eq!(register(CONTRACT + 2).await.unwrap_err().code, Code::IncompatibleVersion);

    // Both versions run now. A job of the next one is none to a worker of this one, which leaves it, too.
    stack.work(vec![scripted_tool("mine", ToolEffect::Read, &stack.ledger)]).await;
    let job = subjects::job("default", "mine");
    stack.contract = CONTRACT + 1;
    stack.dispatch().await;
    stack.work(vec![scripted_tool("yours", ToolEffect::Read, &stack.ledger)]).await;
    for tool in ["mine", "yours", "mine", "yours"] {
        let call = stack.call(tool, json!({})).await;
        stack.output(call).await;
    }
    nats.publish_with(&job, newer, b"{\"jobs_of_the_next_version\": []}").await;
    let call = stack.call("mine", json!({})).await;
    stack.output(call).await;
    until("only what cannot be read is on the stream", async || (nats.messages("JOBS").await == 1).then_some(())).await;
    nats.jetstream("STREAM.PURGE.JOBS", &json!({})).await;

    // To the newer dispatcher the report is one of its own version, so that what it cannot read is wrong.
    dead_letters(&stack, "results", 1).await;
    worker.report(odd, 1, Ok("1")).await;
    assert_eq!(stack.ended(odd).await.state, CallState::Succeeded);
    stack.finish().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_shown_as_unknown_and_fails_no_page() {
    let mut stack = Stack::start().await;
    let answer = json!({"text": "Done.", "mood": "calm", "finish": "bored"});
    let model = Tool::new("small", move |_: Value| std::future::ready(Ok::<_, ToolError>(answer.clone())));
    stack.play_models(vec![model]).await;
    let task = |input: &str| TaskSubmission::new(input, AgentRef::Inline(Box::new(AgentSpec::new("small"))));
    let (odd, good) = (stack.task(&task("odd")).await, stack.task(&task("good")).await);
    for task in [odd, good] {
        stack.task_ended(task).await;
    }
    let refused = stack.submit(&Submission::new("no_such_tool", arguments(json!({})))).await;
    let call = refused.call.unwrap();
    let odd_rows = "
         ALTER TABLE tasks DROP CONSTRAINT tasks_state_check, DROP CONSTRAINT IF EXISTS tasks_check;
         ALTER TABLE tasks DISABLE TRIGGER ALL;
         UPDATE tasks SET state = 'paused' WHERE input = 'odd';
         UPDATE task_steps SET decisions = (decisions::jsonb || '[{\"decision\": \"prayed\"}]')::json,
             input = '{\"event\": \"dreamed\", \"of\": \"sheep\"}' WHERE n = 1;
         ALTER TABLE calls DROP CONSTRAINT IF EXISTS calls_class_check;
         ALTER TABLE calls DISABLE TRIGGER ALL;
         UPDATE calls SET class = 'tired', repairs = '[{\"kind\": \"prayer\", \"before\": \"\", \"after\": \"\"}]' WHERE state = 'refused'";
    stack.execute(odd_rows).await;
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
    stack.execute("UPDATE tasks SET state = 'succeeded' WHERE state = 'paused'; UPDATE calls SET class = 'unknown_tool' WHERE class = 'tired'").await;
    stack.finish().await;
}

#[tokio::test]
async fn a_redrive_with_an_unknown_condition_runs_nothing_and_waits() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    let failed = stack.call("tool", json!({"fail": "auth"})).await;
    stack.ended(failed).await;
    // As if a newer dispatcher wrote it.
    let newer = r#"CREATE FUNCTION newer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                       NEW.filter := (NEW.filter::jsonb || '{"planet": "Mars"}')::json; RETURN NEW; END $$;
                   CREATE TRIGGER newer BEFORE INSERT ON redrives FOR EACH ROW EXECUTE FUNCTION newer()"#;
    stack.execute(newer).await;
    let filter = RedriveFilter { tool: Some("tool".to_owned()), ..RedriveFilter::default() };
    let create = CreateRedrive { redrive: RedriveId::generate(), filter, dry_run: false, rate: None, at_most: None };
    ask::<RedriveView>(stack.queue(), Verb::RedriveCreate, &create).await.unwrap();
    stack.counts(1, "redrives WHERE taken_by IS NOT NULL").await;
    let (store, own) = (stack.store(Purpose::Audit).await, Tenant::default());
    let state = async || store.of(&own).redrive(create.redrive).await.unwrap().unwrap().state;
    assert_eq!(state().await, RedriveState::Counting, "it did not fail");
    stack.execute("UPDATE redrives SET filter = (filter::jsonb - 'planet')::json, next_at = clock_timestamp()").await;
    until("it ends once it can be read", async || (state().await == RedriveState::Done).then_some(())).await;
    stack.finish().await;
}

#[test]
fn a_program_says_its_versions() {
    let output = Command::new(env!("CARGO_BIN_EXE_redial")).args(["version", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said, json!({"version": env!("CARGO_PKG_VERSION"), "contract": CONTRACT}));
}
