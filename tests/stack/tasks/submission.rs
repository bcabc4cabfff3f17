//! How tasks are submitted.

use redial_proto::{
    AgentRef, Code, SubmitStatus, TaskGet, TaskState, TaskSubmission,
    subjects::{Intake, Verb},
};
use redial_test_stack::{Servers, Stack, until};

use super::script::{Model, agent, says, task};

#[tokio::test]
async fn a_key_makes_a_submission_safe_to_repeat() {
    let mut stack = Stack::start().await;
    let model = Model::new("small", |_| Ok(says("yes")));
    stack.play_models(vec![model.tool()]).await;
    let keyed = TaskSubmission { key: Some("k".into()), ..task("Once?", agent("small", &[])) };
    let first = stack.submit_task(&keyed).await;
    let again = stack.submit_task(&keyed).await;
    assert_eq!((first.status, again.status), (SubmitStatus::Accepted, SubmitStatus::Existing));
    assert_eq!((first.task, first.conversation), (again.task, again.conversation));
    let other = TaskSubmission { input: "Twice?".into(), ..keyed };
    let conflict = stack.submit_task(&other).await;
    assert_eq!(conflict.error.unwrap().code, Code::IdempotencyConflict);
    stack.task_ended(first.task.unwrap()).await;
    stack.finish().await;
}

#[tokio::test]
async fn the_intake_stream_takes_tasks() {
    let mut stack = Stack::start().await;
    let model = Model::new("small", |_| Ok(says("yes")));
    stack.play_models(vec![model.tool()]).await;
    let good = TaskSubmission { conversation: Some("c".into()), ..task("Quietly?", agent("small", &[])) };
    let bad = task("Quietly?", agent("smal", &[]));
    for submission in [good, bad] {
        stack.raw_nats().await.publish(&stack.intake(Intake::Tasks), &serde_json::to_vec(&submission).unwrap()).await;
    }
    until("the good task has ended, the bad one is a dead letter", async || {
        let state =
            sqlx::query_scalar::<_, String>("SELECT state FROM tasks").fetch_optional(stack.db()).await.unwrap();
        let kept =
            sqlx::query_scalar::<_, String>("SELECT code FROM dead_letters").fetch_optional(stack.db()).await.unwrap();
        (state.as_deref() == Some("succeeded") && kept.as_deref() == Some("unknown_model")).then_some(())
    })
    .await;
    stack.finish().await;
}

#[tokio::test]
async fn agents_come_from_a_file_that_may_change() {
    let mut stack = Stack::on(Servers::start().await).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agents.toml");
    std::fs::write(&file, "[agents.helper]\nmodel = \"small\"\n").unwrap();
    stack.agents = Some(file.clone());
    stack.dispatch().await;
    let model = Model::new("small", |_| Ok(says("yes")));
    stack.play_models(vec![model.tool()]).await;
    let named = |name: &str| TaskSubmission { agent: AgentRef::Name(name.into()), ..task("Hello?", agent("", &[])) };

    let report = stack.task_ended(stack.task(&named("helper")).await).await;
    assert_eq!((report.task.agent.as_deref(), report.task.state), (Some("helper"), TaskState::Succeeded));
    let unknown = stack.submit_task(&named("helpr")).await.error.unwrap();
    assert_eq!(unknown.code, Code::UnknownAgent);
    assert!(unknown.message.contains("did you mean \"helper\"?"), "{unknown}");

    std::fs::write(&file, "[agents.helper]\nmodel = 7\n").unwrap();
    let result = until("the file is looked at", async || {
        let result = stack.submit_task(&named("helper")).await;
        result.warning.is_some().then_some(result)
    })
    .await;
    assert_eq!(result.status, SubmitStatus::Accepted, "the earlier agent stays in use");
    assert!(result.warning.unwrap().contains("agent \"helper\": found the number 7; allowed: a text in quotes"));
    until("all tasks have ended", async || {
        let open = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tasks WHERE finished_at IS NULL");
        (open.fetch_one(stack.db()).await.unwrap() == 0).then_some(())
    })
    .await;
    stack.finish().await;
}

#[tokio::test]
async fn an_unknown_task_is_an_error() {
    let stack = Stack::start().await;
    let get = TaskGet { task: redial_proto::TaskId::generate(), after_step: 0 };
    let raw = stack.raw_nats().await.request(&stack.subject(Verb::TaskGet), &serde_json::to_vec(&get).unwrap()).await;
    let error: redial_proto::ApiError = serde_json::from_slice(&raw).unwrap();
    assert_eq!(error.code, Code::TaskNotFound);
    stack.finish().await;
}
