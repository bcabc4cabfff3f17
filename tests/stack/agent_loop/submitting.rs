//! Ways to submit a task, and invalid submissions.

use std::time::Duration;

use redial_proto::{
    AgentRef, AgentSpec, Code, SubmitStatus, TaskSubmission,
    subjects::{Intake, Verb},
};
use redial_test_stack::{Stack, unique_path, until};

use super::fixture::{Fixture, agent, answer, book_tool, says, task};

#[tokio::test]
async fn changes_of_the_file_of_agents_take_effect() {
    let mut stack = Stack::start().await;
    stack.stop_dispatchers().await;
    let path = unique_path("agents");
    let file = |name: &str| format!("[agents.{name}]\nmodel = \"small\"\ntools = [\"book\"]\n");
    std::fs::write(&path, file("travel")).unwrap();
    stack.agents = Some(path.clone());
    stack.dispatch().await;
    let fixture = Fixture::over(stack, vec![book_tool()]).await;
    fixture.small([says("hello")]);
    let named = |name: &str| TaskSubmission { agent: AgentRef::Name(name.into()), ..task("hi", agent()) };
    let id = fixture.stack.task(&named("travel")).await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!((answer(&report), report.task.agent.as_deref()), ("hello", Some("travel")));
    let error = fixture.stack.submit_task(&named("travle")).await.error.unwrap();
    assert_eq!(error.code, Code::UnknownAgent);
    assert!(error.message.contains("did you mean \"travel\"?"), "{error}");
    std::fs::write(&path, file("hotels")).unwrap();
    // The file is checked at most once a second.
    until("the new agent is known", async || {
        (fixture.stack.submit_task(&named("hotels")).await.status == SubmitStatus::Accepted).then_some(())
    })
    .await;
    until("it ends", async || {
        let open = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tasks WHERE finished_at IS NULL");
        (open.fetch_one(fixture.stack.db()).await.ok()? == 0).then_some(())
    })
    .await;
    fixture.close().await;
}

#[tokio::test]
async fn errors_of_invalid_submissions_name_what_is_allowed() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let cases = [
        (task("", agent()), Code::InvalidValue, "input"),
        (task(&"x".repeat(5 << 20), agent()), Code::TooLarge, "4194304"),
        (task("go", AgentSpec { model: "smal".into(), ..agent() }), Code::UnknownModel, "did you mean \"small\"?"),
        (task("go", AgentSpec { tools: vec!["bok".into()], ..agent() }), Code::InvalidAgent, "did you mean \"book\"?"),
        (task("go", AgentSpec { context_tokens: 1, ..agent() }), Code::InvalidAgent, "context_tokens is 1"),
        (task("go", agent()), Code::InvalidValue, "conversation"),
    ];
    for (n, (mut submission, code, says)) in cases.into_iter().enumerate() {
        if n == 5 {
            submission.conversation = Some("x".repeat(300));
        }
        let result = fixture.stack.submit_task(&submission).await;
        let error = result.error.unwrap();
        assert_eq!((result.status, error.code), (SubmitStatus::Rejected, code), "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let wrong = serde_json::json!({"inptu": "go", "agent": "a"});
    let result: redial_proto::TaskResult =
        fixture.stack.queue().ask(Verb::TaskSubmit, &wrong, Duration::from_secs(10)).await.unwrap();
    assert_eq!(result.error.unwrap().code, Code::InvalidMessage);
    fixture.close().await;
}

#[tokio::test]
async fn the_intake_stream_accepts_tasks_and_keeps_invalid_messages() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("from afar")]);
    let mut nats = fixture.stack.raw_nats().await;
    let body = serde_json::to_string(&task("go", agent())).unwrap();
    nats.publish(&fixture.stack.intake(Intake::Tasks), body.as_bytes()).await;
    nats.publish(&fixture.stack.intake(Intake::Tasks), b"no json").await;
    let answered = until("the task is answered", async || {
        sqlx::query_scalar::<_, String>("SELECT answer FROM tasks WHERE answer IS NOT NULL")
            .fetch_optional(fixture.stack.db())
            .await
            .ok()?
    })
    .await;
    assert_eq!(answered, "from afar");
    until("the other message is a dead letter", async || {
        let kept = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM dead_letters WHERE source = 'intake'");
        (kept.fetch_one(fixture.stack.db()).await.ok()? == 1).then_some(())
    })
    .await;
    fixture.close().await;
}
