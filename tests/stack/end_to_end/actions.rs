//! What users do is on record, with who did it.

use redial_proto::{
    CallState, CancelReply, CancelRequest, Code, ForgetTool, ForgetToolReply, RedriveReply, RedriveRequest,
    SubmitStatus, ToolSpec, subjects::Verb,
};
use redial_test_stack::{Stack, until};
use redial_tools::{Tool, ToolError};
use serde_json::json;

use super::{by_hand::Hand, fixture::ask};

#[tokio::test]
async fn every_action_is_on_record_with_who_what_and_on_how_many() {
    let mut stack = Stack::start().await;
    let fails = Tool::new("fails", |_: serde_json::Value| async { Err::<(), _>(ToolError::auth("no")) });
    stack.work(vec![fails, Tool::echo()]).await;
    let call = stack.call("fails", json!({})).await;
    assert_eq!(stack.ended(call).await.state, CallState::Failed);
    let (bob, eve) = (stack.user("default", "bob").await, stack.user("globex", "eve").await);
    let redrive = RedriveRequest::unchanged(vec![call, redial_proto::CallId::generate()]);
    let reply: RedriveReply = ask(&bob, Verb::CallRedrive, &redrive).await.unwrap();
    stack.ended(reply.results[0].call.unwrap()).await;
    let cancel: CancelReply = ask(&bob, Verb::CallCancel, &CancelRequest { call }).await.unwrap();
    assert_eq!(cancel.state, CallState::Failed);
    let again: RedriveReply = ask(&bob, Verb::CallRedrive, &RedriveRequest::unchanged(vec![call])).await.unwrap();
    assert_eq!(again.results[0].status, SubmitStatus::Existing);
    let forget = ForgetTool { tool: "echo".to_owned() };
    let refused = async |user| ask::<ForgetToolReply>(user, Verb::ToolForget, &forget).await.unwrap_err().code;
    assert_eq!(refused(&bob).await, Code::WrongState);
    assert_eq!(refused(&eve).await, Code::Forbidden, "tools belong to no tenant");
    let view = stack.get(reply.results[0].call.unwrap()).await;
    assert_eq!(view.submitted_by.as_deref(), Some("bob"), "who had it run again");
    assert_eq!(stack.get(call).await.submitted_by.as_deref(), Some("local"));
    let actions = "SELECT concat_ws(' ', user_name, verb, array_to_string(targets, ','), result, changed) FROM actions ORDER BY id";
    let wanted = [
        format!("bob calls.redrive {call},{} done 1", redrive.calls[1]),
        format!("bob calls.cancel {call} done 0"),
        format!("bob calls.redrive {call} done 0"),
        "bob tools.forget echo wrong_state 0".to_owned(),
        "eve tools.forget echo forbidden 0".to_owned(),
    ];
    assert_eq!(stack.values::<String>(actions).await, wanted);
    stack.finish().await;
}

/// Actions of bob that are on record: what changed something, and the others.
async fn kept(stack: &Stack) -> (i64, i64) {
    let bobs = async |what: &str| stack.count(&format!("actions WHERE user_name = 'bob' AND {what}")).await;
    (bobs("effective").await, bobs("NOT effective").await)
}

/// Actions that are on record already: all of `fill`, newest last.
async fn fill(stack: &Stack, rows: i64, result: &str, changed: i32) {
    let fill = format!(
        "INSERT INTO actions (tenant, user_name, role, door, verb, targets, target_count, result, changed)
         SELECT 'default', user_name, 'submit', 'nats', 'calls.cancel', '{{x}}', 1, '{result}', {changed}
         FROM generate_series(1, {rows}), (VALUES ('bob'), ('ann')) AS u (user_name)"
    );
    stack.execute(&fill).await;
}

#[tokio::test]
async fn a_user_cannot_fill_the_record_nor_push_out_what_was_done() {
    let stack = Stack::start().await;
    fill(&stack, 100_020, "done", 1).await;
    fill(&stack, 10_020, "call_not_found", 0).await;
    let bob = stack.user("default", "bob").await;
    until("the oldest are deleted", async || {
        for _ in 0..50 {
            let cancel = CancelRequest { call: redial_proto::CallId::generate() };
            let error = ask::<CancelReply>(&bob, Verb::CallCancel, &cancel).await.unwrap_err();
            assert_eq!(error.code, Code::CallNotFound);
        }
        let (effective, others) = kept(&stack).await;
        (effective == 100_000 && others < 10_050).then_some(())
    })
    .await;
    assert!(kept(&stack).await.1 >= 10_000, "the newest stay");
    assert_eq!(stack.count("actions WHERE user_name = 'ann'").await, 110_040, "nobody pushes out what others did");
    stack.finish().await;
}

/// No row, no change.
#[tokio::test]
async fn nothing_is_done_that_cannot_be_recorded() {
    let mut stack = Stack::start().await;
    let worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    stack.leaves_jobs();
    let call = stack.call("read", json!({})).await;
    worker.beat().await;
    stack.execute("ALTER TABLE actions RENAME TO elsewhere").await;
    let bob = stack.user("default", "bob").await;
    let error = ask::<CancelReply>(&bob, Verb::CallCancel, &CancelRequest { call }).await.unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert_eq!(stack.get(call).await.state, CallState::Ready);
    stack.execute("ALTER TABLE elsewhere RENAME TO actions").await;
    stack.cancel(call).await;
    stack.finish().await;
}
