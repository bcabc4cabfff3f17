//! How tasks continue and end.

use redial_proto::{
    CallState, ErrorClass, Role, TaskCode, TaskDecision, TaskInput, TaskReport, TaskState, TaskSubmission, ToolEffect,
    ToolSpec, TurnUsage,
};
use redial_test_stack::{Stack, scripted_tool, until};
use redial_tools::Tool;
use serde_json::json;

use super::script::{Always, Model, agent, calls, failure, says, task};

fn roles(report: &TaskReport) -> Vec<Role> {
    report.messages.iter().map(|stored| stored.message.role).collect()
}

/// With instructions, two calls and an answer.
const ROLES: [Role; 7] =
    [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::Tool, Role::Assistant];

#[tokio::test]
async fn a_task_is_answered_after_a_repair_and_a_correction() {
    let mut stack = Stack::start().await;
    let model = Model::playing(
        "small",
        vec![
            calls([("look", json!({"fail": "invalid_arguments", "harmless": true}))]),
            calls([("Look", json!(r#"{"output": "{\"seen\": 1}",}"#))]),
            says("I saw 1."),
        ],
    );
    let look = scripted_tool("look", ToolEffect::Read, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![look]).await;
    let agent = redial_proto::AgentSpec { system: "Be brief.".to_owned(), ..agent("small", &["look"]) };
    let id = stack.task(&task("What do you see?", agent)).await;
    let report = stack.task_ended(id).await;

    assert_eq!((report.task.state, report.task.code), (TaskState::Succeeded, Some(TaskCode::Answered)));
    assert_eq!(report.task.answer.as_deref(), Some("I saw 1."));
    assert_eq!((report.task.turns, report.task.tool_calls, report.task.corrections), (3, 2, 1));
    assert_eq!(roles(&report), ROLES);
    let seqs: Vec<u32> = report.messages.iter().map(|stored| stored.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(report.messages[3].message.class, Some(ErrorClass::InvalidArguments));
    assert_eq!(report.messages[5].message.content, r#"{"seen": 1}"#);
    let request = model.asked(3);
    assert_eq!(request.messages.len(), 6);
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["look"]);
    let repaired = report.steps.iter().flat_map(|step| &step.decisions).filter_map(|decision| match decision {
        TaskDecision::Run { repairs, .. } => Some(repairs.len()),
        _ => None,
    });
    assert_eq!(repaired.collect::<Vec<_>>(), [0, 2]);
    stack.finish().await;
}

#[tokio::test]
async fn parallel_calls_are_answered_in_order_and_a_retry_is_a_step() {
    let mut stack = Stack::start().await;
    let replies = vec![
        calls([
            ("act", json!({"n": 1, "fail": "unavailable", "times": 2})),
            ("act", json!({"n": 2, "fail": "auth"})),
            ("act", json!({"n": 3, "output": "3"})),
        ]),
        says("done"),
    ];
    let model = Model::playing("small", replies);
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let report = stack.task_ended(stack.task(&task("Do it.", agent("small", &["a*"]))).await).await;
    assert_eq!(report.task.state, TaskState::Succeeded);
    let tools: Vec<_> = report.messages.iter().filter(|stored| stored.message.role == Role::Tool).collect();
    assert_eq!(tools.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(
        tools.iter().map(|stored| stored.message.class).collect::<Vec<_>>(),
        [None, Some(ErrorClass::Auth), None]
    );
    assert_eq!(tools[2].message.content, "3");
    let retries = report.steps.iter().filter(|step| matches!(step.input, TaskInput::Retrying { call_index: 1, .. }));
    assert_eq!(retries.count(), 2);
    let numbers: Vec<u32> = report.steps.iter().map(|step| step.step).collect();
    assert!(numbers.iter().copied().eq(1..=u32::try_from(numbers.len()).unwrap()), "{numbers:?}");
    stack.finish().await;
}

#[tokio::test]
async fn tasks_of_a_conversation_run_one_after_the_other() {
    let mut stack = Stack::start().await;
    let model = Model::new("small", |request| {
        let asked = request.messages.iter().filter(|message| message.role == Role::User).count();
        Ok(says(&format!("{asked} questions so far")))
    });
    stack.play_models(vec![model.tool()]).await;
    let question = |n: u32| TaskSubmission {
        conversation: Some("c".to_owned()),
        ..task(&format!("question {n}"), agent("small", &[]))
    };
    let mut tasks = Vec::new();
    for n in 1..=5 {
        tasks.push(stack.task(&question(n)).await);
    }
    for (n, id) in (1..).zip(tasks) {
        let report = stack.task_ended(id).await;
        assert_eq!(report.task.answer.unwrap(), format!("{n} questions so far"));
        assert_eq!(report.messages.first().unwrap().seq, 2 * n - 1);
    }
    stack.finish().await;
}

#[tokio::test]
async fn a_cancelled_task_answers_its_calls_and_ends() {
    let mut stack = Stack::start().await;
    let hold = "/nowhere/at/all";
    let model = Model::playing("small", vec![calls([("act", json!({"hold": hold})), ("act", json!({"n": 2}))])]);
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let id = stack.task(&task("Do it.", agent("small", &["act"]))).await;
    until("the second call has ended", async || {
        let report = stack.task_report(id).await;
        report.messages.iter().any(|stored| stored.message.role == Role::Tool).then_some(())
    })
    .await;
    assert_eq!(stack.cancel_task(id).await, TaskState::Running);
    let report = stack.task_ended(id).await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Cancelled, Some(TaskCode::Cancelled)));
    assert_eq!(roles(&report), [Role::User, Role::Assistant, Role::Tool, Role::Tool]);
    assert_eq!(report.messages[2].message.class, Some(ErrorClass::Cancelled));
    assert_eq!(stack.cancel_task(id).await, TaskState::Cancelled, "asking again changes nothing");
    stack.finish().await;
}

#[tokio::test]
async fn one_call_of_a_task_can_be_cancelled() {
    let mut stack = Stack::start().await;
    let hold = "/nowhere/at/all";
    let model = Model::playing("small", vec![calls([("act", json!({"hold": hold}))]), says("then not")]);
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let id = stack.task(&task("Do it.", agent("small", &["act"]))).await;
    let call = until("the call runs", async || {
        let running = "SELECT id FROM calls WHERE task_id = $1 AND call_index = 1 AND state = 'running'";
        sqlx::query_scalar(running).bind(id.0).fetch_optional(stack.db()).await.unwrap()
    })
    .await;
    assert_eq!(stack.cancel(redial_proto::CallId(call)).await, CallState::Running);
    let report = stack.task_ended(id).await;
    assert_eq!(report.messages[2].message.class, Some(ErrorClass::Cancelled));
    stack.finish().await;
}

#[tokio::test]
async fn a_model_that_fails_hands_over_to_its_fallback() {
    let mut stack = Stack::start().await;
    let small = Model::new("small", |_| Err(failure(ErrorClass::Auth, "no key")));
    let usage =
        TurnUsage { input_tokens: Some(3), output_tokens: Some(2), cost_micros: Some(7), ..TurnUsage::default() };
    let large = Model::new("large", move |_| Ok(redial_proto::TurnReply { usage, ..says("I can.") }));
    stack.play_models(vec![small.tool(), large.tool()]).await;
    let both = redial_proto::AgentSpec { fallback_model: Some("large".to_owned()), ..agent("small", &[]) };
    let report = stack.task_ended(stack.task(&task("Can you?", both)).await).await;
    assert_eq!((report.task.answer.as_deref(), report.task.usage), (Some("I can."), usage.counted()));
    let report = stack.task_ended(stack.task(&task("Can you?", agent("small", &[]))).await).await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Failed, Some(TaskCode::ModelFailed)));
    assert!(report.task.message.unwrap().contains("no key"));
    stack.finish().await;
}

#[tokio::test]
async fn long_descriptions_leave_room_for_the_conversation() {
    let mut stack = Stack::start().await;
    let model = Model::playing("small", vec![says("I read them.")]);
    let wordy =
        |n: u32| scripted_tool(&format!("wordy_{n}"), ToolEffect::Read, &stack.ledger).describe("word ".repeat(10_000));
    let tools: Vec<_> = (0..6).map(wordy).collect();
    stack.work(tools).await;
    stack.play_models(vec![model.tool()]).await;
    let report = stack.task_ended(stack.task(&task("Hello", agent("small", &["wordy_*"]))).await).await;
    assert_eq!(report.task.answer.as_deref(), Some("I read them."));
    stack.finish().await;
}

#[tokio::test]
async fn a_huge_result_is_shortened_and_read_on() {
    let mut stack = Stack::start().await;
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    let model = Model::new("small", |request| {
        Ok(match request.turn {
            1 => calls([("look", json!({}))]),
            2 => calls([("read_result", json!({"call_id": "c2_1", "offset": 90_000}))]),
            3 => calls([("read_result", json!({"call_id": "c2_1\0", "offset": 0}))]),
            _ => says("read"),
        })
    });
    let look = Tool::from_handler(ToolSpec::named("look"), Always(huge));
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![look]).await;
    let report = stack.task_ended(stack.task(&task("Read it.", agent("small", &["look"]))).await).await;
    assert_eq!(report.task.answer.as_deref(), Some("read"), "{:?}", report.task.message);
    let second = model.asked(2);
    assert!(second.trimmed.shortened == 1 && serde_json::to_string(&second).unwrap().len() < 40_000);
    assert_eq!(second.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["look", "read_result"]);
    assert_eq!(report.task.tool_calls, 1, "the built-in tool costs no call");
    let read: Vec<_> = report.messages.iter().map(|stored| &stored.message).collect();
    let mut read = read.into_iter().filter(|message| message.tool.as_deref() == Some("read_result"));
    let (piece, unknown) = (read.next().unwrap(), read.next().unwrap());
    assert!(piece.class.is_none() && piece.content.contains(r#""offset":90000"#), "{}", piece.content);
    assert_eq!(unknown.class, Some(ErrorClass::InvalidArguments), "no result of this id: {}", unknown.content);
    stack.finish().await;
}

#[tokio::test]
async fn a_task_that_cannot_be_read_ends_when_it_is_cancelled_and_leaves_the_conversation_valid() {
    let mut stack = Stack::start().await;
    let hold = "/nowhere/at/all";
    let replies = vec![calls([("act", json!({"hold": hold})), ("act", json!({"n": 2, "fail": "auth"}))]), says("on")];
    let model = Model::playing("small", replies);
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let first = TaskSubmission { conversation: Some("c".into()), ..task("Do it.", agent("small", &["act"])) };
    let id = stack.task(&first).await;
    until("the second call has ended", async || {
        let report = stack.task_report(id).await;
        report.messages.iter().any(|stored| stored.message.role == Role::Tool).then_some(())
    })
    .await;
    let broken = "UPDATE tasks SET progress = '{\"turns\": \"x\"}', wake_at = clock_timestamp() WHERE id = $1";
    sqlx::query(broken).bind(id.0).execute(stack.db()).await.unwrap();
    stack.cancel_task(id).await;
    let report = stack.task_ended(id).await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Cancelled, Some(TaskCode::Cancelled)));
    let answers = "SELECT seq, class FROM messages WHERE task_id = $1 AND role = 'tool' ORDER BY seq";
    let answers: Vec<(i32, Option<String>)> = sqlx::query_as(answers).bind(id.0).fetch_all(stack.db()).await.unwrap();
    assert_eq!(answers, [(3, Some("internal".to_owned())), (4, Some("auth".to_owned()))]);
    let open = "SELECT id FROM calls WHERE task_id = $1 AND finished_at IS NULL";
    let open = sqlx::query_scalar(open).bind(id.0).fetch_one(stack.db()).await.unwrap();
    stack.cancel(redial_proto::CallId(open)).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_task_continues_on_the_next_dispatcher() {
    let mut stack = Stack::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("go");
    let hold = file.clone();
    let model = Model::new("small", move |request| {
        Ok(if request.turn == 1 { calls([("act", json!({"hold": hold}))]) } else { says("done") })
    });
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let id = stack.task(&task("Do it.", agent("small", &["act"]))).await;
    until("the tool runs", async || (!stack.ledger.entries().is_empty()).then_some(())).await;
    stack.stop_dispatchers().await;
    std::fs::write(&file, "").unwrap();
    stack.dispatch().await;
    let report = stack.task_ended(id).await;
    assert_eq!((report.task.answer.as_deref(), report.task.tool_calls), (Some("done"), 1));
    stack.finish().await;
}

#[tokio::test]
async fn a_task_that_was_not_woken_is_found() {
    let mut stack = Stack::start().await;
    let model = Model::playing("small", vec![calls([("act", json!({"hold": "/nowhere/at/all"}))])]);
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let id = stack.task(&task("Do it.", agent("small", &["act"]))).await;
    until("the tool runs", async || (!stack.ledger.entries().is_empty()).then_some(())).await;
    // As another dispatcher would, and then die.
    let cancel = "INSERT INTO task_inbox (task_id, kind) VALUES ($1, 'cancel')";
    sqlx::query(cancel).bind(id.0).execute(stack.db()).await.unwrap();
    assert_eq!(stack.task_ended(id).await.task.state, TaskState::Cancelled);
    stack.finish().await;
}
