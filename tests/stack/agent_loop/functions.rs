//! Functions of the client: calls that no worker serves, and that the client answers.

use redial_proto::{
    AnswerReply, AnswerRequest, CallId, CallState, Code, ErrorClass, FunctionError, FunctionSpec, TaskId, TaskState,
    TaskSubmission, subjects::Verb,
};
use redial_queue::{Queue, QueueError};
use redial_testkit::Stack;
use serde_json::{Value, json, value::to_raw_value};

use super::fixture::{Fixture, agent, answer, book_tool, calls, feedback, roles, says, task};

const ANSWER: std::time::Duration = std::time::Duration::from_secs(25);

fn ask_user() -> FunctionSpec {
    let parameters = json!({
        "type": "object", "properties": {"question": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["question"], "additionalProperties": false,
    });
    FunctionSpec { name: "ask_user".into(), description: "Asks the user.".into(), parameters }
}

fn with_function(input: &str) -> TaskSubmission {
    TaskSubmission { functions: vec![ask_user()], ..task(input, agent()) }
}

fn output(call: CallId, output: &Value) -> AnswerRequest {
    AnswerRequest { call, output: Some(to_raw_value(output).unwrap()), error: None }
}

fn error(call: CallId, class: ErrorClass) -> AnswerRequest {
    let error = FunctionError { message: "the window is closed".into(), class };
    AnswerRequest { call, output: None, error: Some(error) }
}

async fn give(queue: &Queue, request: &AnswerRequest) -> Result<CallState, Code> {
    match queue.ask::<_, AnswerReply>(Verb::CallAnswer, request, ANSWER).await {
        Ok(reply) => Ok(reply.state),
        Err(QueueError::Api(error)) => Err(error.code),
        Err(other) => panic!("{other}"),
    }
}

/// The calls of the task's functions that wait, once there are so many.
async fn waiting(stack: &Stack, task: TaskId, count: usize) -> Vec<CallId> {
    redial_testkit::until("the functions wait for their client", async || {
        let ids = sqlx::query_scalar::<_, uuid::Uuid>(
            "SELECT id FROM calls WHERE task_id = $1 AND state = 'client_wait' ORDER BY turn, call_index",
        );
        let ids = ids.bind(task.0).fetch_all(stack.db()).await.unwrap();
        (ids.len() == count).then(|| ids.into_iter().map(CallId).collect())
    })
    .await
}

#[tokio::test]
async fn a_client_answers_beside_tools_and_the_record_says_who() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    // Damaged arguments of a function are repaired like those of a tool.
    fixture.small([
        calls(&[
            ("ask_user", r#"{"Question": "Which city?", "times": "1",}"#),
            ("book", r#"{"departure_city":"Rome","seats":1}"#),
        ]),
        says("Booked."),
    ]);
    let id = fixture.stack.task(&with_function("a trip")).await;
    let call = waiting(&fixture.stack, id, 1).await[0];
    let view = fixture.stack.get(call).await;
    assert_eq!((view.state, view.attempts, view.repairs.len()), (CallState::ClientWait, 0, 3), "{view:?}");
    assert_eq!(fixture.body(0)["tools"][0]["function"]["name"], "ask_user");
    assert_eq!(give(fixture.stack.queue(), &output(call, &json!({"city": "Rome"}))).await, Ok(CallState::Succeeded));
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "Booked.");
    assert_eq!(report.task.tool_calls, 2, "a function counts like a tool");
    let seen = fixture.seen(1);
    assert_eq!(roles(&seen), ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(seen[3]["content"], r#"{"city":"Rome"}"#);
    let view = fixture.stack.get(call).await;
    assert_eq!((view.state, view.attempts), (CallState::Succeeded, 1));
    assert_eq!(view.attempts_made[0].worker, format!("client {}", fixture.stack.queue().user()));
    assert_eq!(view.attempts_made[0].started_at, view.submitted_at);
    let published: i32 = sqlx::query_scalar("SELECT publish_no FROM calls WHERE id = $1")
        .bind(call.0)
        .fetch_one(fixture.stack.db())
        .await
        .unwrap();
    assert_eq!(published, 0, "no job was ever published");
    fixture.close().await;
}

#[tokio::test]
async fn the_first_answer_counts_and_the_same_one_again_gets_the_same_reply() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("ask_user", r#"{"question":"a"}"#), ("ask_user", r#"{"question":"b"}"#)]), says("done")]);
    let id = fixture.stack.task(&with_function("go")).await;
    let open = waiting(&fixture.stack, id, 2).await;
    let queue = fixture.stack.queue();
    let first = output(open[0], &json!({"a": 1, "b": null}));
    // All at once, and afterwards again: one of them ends the call, and each gets its reply.
    let (one, two, three) = tokio::join!(give(queue, &first), give(queue, &first), give(queue, &first));
    assert_eq!([one, two, three], [Ok(CallState::Succeeded); 3]);
    assert_eq!(give(queue, &output(open[0], &json!({"b": null, "a": 1}))).await, Ok(CallState::Succeeded));
    assert_eq!(give(queue, &output(open[0], &json!(2))).await, Err(Code::WrongState));
    assert_eq!(give(queue, &error(open[0], ErrorClass::ToolFailed)).await, Err(Code::WrongState));
    assert_eq!(give(queue, &error(open[1], ErrorClass::ToolFailed)).await, Ok(CallState::Failed));
    assert_eq!(give(queue, &error(open[1], ErrorClass::ToolFailed)).await, Ok(CallState::Failed));
    assert_eq!(answer(&fixture.stack.task_ended(id).await), "done");
    let told = feedback(&fixture.seen(1));
    assert_eq!(
        (told["class"].as_str(), told["message"].as_str()),
        (Some("tool_failed"), Some("ask_user failed: the window is closed"))
    );
    assert_eq!(give(queue, &error(open[1], ErrorClass::Unavailable)).await, Err(Code::InvalidValue));
    assert_eq!(give(queue, &output(CallId::generate(), &json!(1))).await, Err(Code::CallNotFound));
    let tool = fixture.stack.call("book", json!({"departure_city": "Rome", "seats": 1})).await;
    fixture.stack.ended(tool).await;
    assert_eq!(give(queue, &output(tool, &json!(1))).await, Err(Code::WrongState), "a worker serves it");
    fixture.close().await;
}

#[tokio::test]
async fn a_function_that_nobody_answers_ends_and_its_model_is_told() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("ask_user", r#"{"question":"a"}"#)]), says("I got no answer.")]);
    let id = fixture.stack.task(&TaskSubmission { function_timeout_ms: Some(1_000), ..with_function("go") }).await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "I got no answer.");
    assert_eq!(report.task.corrections, 0);
    let told = feedback(&fixture.seen(1));
    assert_eq!(told["class"], "unanswered");
    assert!(told["message"].as_str().unwrap().contains("was not answered in time"), "{told}");
    let (call, _, state, attempts) = fixture.calls_of(id).await.remove(0);
    assert_eq!((state.as_str(), attempts), ("failed", 0));
    assert_eq!(give(fixture.stack.queue(), &output(call, &json!(1))).await, Err(Code::WrongState), "too late");
    fixture.close().await;
}

#[tokio::test]
async fn wrong_arguments_of_a_function_are_fed_back() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([
        calls(&[("ask_user", r#"{"times":"often"}"#)]),
        calls(&[("ask_user", r#"{"question":"a"}"#)]),
        says("done"),
    ]);
    let id = fixture.stack.task(&with_function("go")).await;
    let open = waiting(&fixture.stack, id, 1).await;
    assert_eq!(feedback(&fixture.seen(1))["class"], "invalid_arguments");
    give(fixture.stack.queue(), &output(open[0], &Value::Null)).await.unwrap();
    let report = fixture.stack.task_ended(id).await;
    assert_eq!((answer(&report), report.task.corrections), ("done", 1));
    fixture.close().await;
}

#[tokio::test]
async fn a_task_whose_function_waits_can_be_cancelled() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let asks = || calls(&[("ask_user", r#"{"question":"a"}"#)]);
    fixture.small([asks(), asks(), says("done")]);
    let id = fixture.stack.task(&with_function("go")).await;
    let call = waiting(&fixture.stack, id, 1).await[0];
    fixture.stack.cancel_task(id).await;
    assert_eq!(fixture.stack.task_ended(id).await.task.state, TaskState::Cancelled);
    assert_eq!(fixture.stack.get(call).await.state, CallState::Cancelled);
    // A call alone: the task goes on, and its model is told.
    let id = fixture.stack.task(&with_function("again")).await;
    let call = waiting(&fixture.stack, id, 1).await[0];
    assert_eq!(fixture.stack.cancel(call).await, CallState::Cancelled);
    fixture.stack.task_ended(id).await;
    assert_eq!(fixture.stack.redrive(call).await.error.unwrap().code, Code::WrongState);
    fixture.close().await;
}

#[tokio::test]
async fn an_answer_outlives_the_dispatcher_that_took_it() {
    let mut fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("ask_user", r#"{"question":"a"}"#)]), says("done")]);
    let id = fixture.stack.task(&with_function("go")).await;
    let call = waiting(&fixture.stack, id, 1).await[0];
    fixture.stack.stop_dispatchers().await;
    // What a dispatcher leaves behind that dies between the commit of the answer and the next step.
    let store = fixture.stack.store(redial_store::Purpose::Dispatch).await;
    let record = store.load(&[call]).await.unwrap().remove(0);
    let event = redial_engine::call::CallEvent::Answered { by: "client local", answer: Ok("\"Rome\"") };
    let policy = redial_proto::RetryPolicy::default();
    let transition = redial_engine::call::plan(&record, &policy, &event, record.read_at, 0.0).unwrap();
    assert_eq!(store.apply(std::slice::from_ref(&transition)).await.unwrap().len(), 1);
    assert_eq!(store.apply(&[transition]).await.unwrap().len(), 0, "only once");
    fixture.stack.dispatch().await;
    assert_eq!(answer(&fixture.stack.task_ended(id).await), "done");
    assert_eq!(fixture.seen(1)[3]["content"], "\"Rome\"");
    assert_eq!(give(fixture.stack.queue(), &output(call, &json!("Rome"))).await, Ok(CallState::Succeeded));
    fixture.close().await;
}

#[tokio::test]
async fn another_tenant_cannot_answer_and_a_tool_keeps_its_name() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([calls(&[("ask_user", r#"{"question":"a"}"#)]), says("done")]);
    let id = fixture.stack.task(&with_function("go")).await;
    let call = waiting(&fixture.stack, id, 1).await[0];
    let stranger = fixture.stack.user("globex", "eve").await;
    assert_eq!(give(&stranger, &output(call, &json!(1))).await, Err(Code::CallNotFound));
    let shadow = FunctionSpec { name: "book".into(), ..ask_user() };
    let refused = fixture.stack.submit_task(&TaskSubmission { functions: vec![shadow], ..task("go", agent()) }).await;
    let refused = refused.error.unwrap();
    assert_eq!(refused.code, Code::InvalidAgent);
    assert!(refused.message.contains("\"book\" is the name of a tool of the agent"), "{refused}");
    give(fixture.stack.queue(), &output(call, &json!(1))).await.unwrap();
    fixture.stack.task_ended(id).await;
    fixture.close().await;
}
