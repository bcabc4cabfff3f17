//! Functions of the client: calls that no worker serves, and that the client answers.

use redial_proto::{
    AnswerReply, AnswerRequest, CallId, CallState, Code, FunctionSpec, TaskId, TaskState, TaskSubmission,
    subjects::Verb,
};
use redial_queue::Queue;
use redial_test_stack::Stack;
use serde_json::{Value, json, value::to_raw_value};

use super::fixture::{Fixture, agent, answer, book_tool, calls, feedback, roles, says, task};
use crate::end_to_end::fixture::ask;

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

async fn give(queue: &Queue, request: &AnswerRequest) -> Result<CallState, Code> {
    let reply = ask::<AnswerReply>(queue, Verb::CallAnswer, request).await;
    reply.map(|reply| reply.state).map_err(|error| error.code)
}

/// The call of the task's function, once it waits.
async fn waiting(stack: &Stack, task: TaskId) -> CallId {
    redial_test_stack::until("the function waits for its client", async || {
        let waits = format!("SELECT id FROM calls WHERE task_id = '{task}' AND state = 'client_wait'");
        stack.values(&waits).await.pop().map(CallId)
    })
    .await
}

#[tokio::test]
async fn a_client_answers_beside_tools_and_the_record_says_who() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    // Damaged arguments of a function are repaired like those of a tool.
    let asked = ("ask_user", r#"{"Question": "Which city?", "times": "1",}"#);
    fixture.small([calls("", &[asked, ("book", r#"{"departure_city":"Rome","seats":1}"#)]), says("Booked.")]);
    let id = fixture.stack.task(&with_function("a trip")).await;
    let call = waiting(&fixture.stack, id).await;
    let stranger = fixture.stack.user("globex", "eve").await;
    assert_eq!(give(&stranger, &output(call, &json!(1))).await, Err(Code::CallNotFound));
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
    let never = format!("calls WHERE id = '{call}' AND publish_no = 0");
    assert_eq!(fixture.stack.count(&never).await, 1, "no job was ever published");
    fixture.close().await;
}

#[tokio::test]
async fn a_function_ends_without_an_answer_and_its_model_is_told() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    let asks = || calls("", &[("ask_user", r#"{"question":"a"}"#)]);
    fixture.small([asks(), says("I got no answer."), asks(), asks(), says("done")]);
    let id = fixture.stack.task(&TaskSubmission { function_timeout_ms: Some(1_000), ..with_function("go") }).await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!((answer(&report), report.task.corrections), ("I got no answer.", 0));
    assert_eq!(feedback(&fixture.seen(1))["class"], "unanswered");
    let (call, _, state, attempts) = fixture.calls_of(id).await.remove(0);
    assert_eq!((state.as_str(), attempts), ("failed", 0));
    assert_eq!(give(fixture.stack.queue(), &output(call, &json!(1))).await, Err(Code::WrongState), "too late");
    // With its task.
    let id = fixture.stack.task(&with_function("go")).await;
    let call = waiting(&fixture.stack, id).await;
    fixture.stack.cancel_task(id).await;
    assert_eq!(fixture.stack.task_ended(id).await.task.state, TaskState::Cancelled);
    assert_eq!(fixture.stack.get(call).await.state, CallState::Cancelled);
    // Alone: the task goes on, and its model is told.
    let id = fixture.stack.task(&with_function("again")).await;
    let call = waiting(&fixture.stack, id).await;
    assert_eq!(fixture.stack.cancel(call).await, CallState::Cancelled);
    assert_eq!(answer(&fixture.stack.task_ended(id).await), "done");
    assert_eq!(fixture.stack.redrive(call).await.error.unwrap().code, Code::WrongState);
    fixture.close().await;
}
