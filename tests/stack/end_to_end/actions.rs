//! What users do is on record, with who did it.

use std::time::Duration;

use redial_proto::{
    ApiError, CallState, CallView, CancelReply, CancelRequest, Code, Forget, ForgetReply, ForgetTool, ForgetToolReply,
    GetRequest, Language, RedriveReply, RedriveRequest, SubmitResult, SubmitStatus, ToolSpec, subjects::Verb,
};
use redial_queue::QueueError;
use redial_store::{ActionFilter, ActionRecord, Purpose};
use redial_test_stack::{Stack, until};
use redial_tools::{Tool, ToolError};
use serde_json::json;

use super::by_hand::Hand;

const ANSWER: Duration = Duration::from_secs(25);

async fn actions(stack: &Stack) -> Vec<(String, String, Vec<String>, Option<String>, Option<i32>)> {
    let found: Vec<ActionRecord> =
        stack.store(Purpose::Audit).await.actions(&ActionFilter::default(), 100).await.unwrap();
    found.into_iter().rev().map(|one| (one.user, one.verb, one.targets, one.result, one.changed)).collect()
}

#[tokio::test]
async fn every_action_is_on_record_with_who_what_and_on_how_many() {
    let mut stack = Stack::start().await;
    let fails = Tool::new("fails", |_: serde_json::Value| async { Err::<(), _>(ToolError::auth("no")) });
    stack.work(vec![fails, Tool::echo()]).await;
    let call = stack.call("fails", json!({})).await;
    assert_eq!(stack.ended(call).await.state, CallState::Failed);
    let (bob, eve) = (stack.user("default", "bob").await, stack.user("globex", "eve").await);
    let redrive = RedriveRequest::unchanged(vec![call, redial_proto::CallId::generate()]);
    let reply: RedriveReply = bob.ask(Verb::CallRedrive, &redrive, ANSWER).await.unwrap();
    stack.ended(reply.results[0].call.unwrap()).await;
    let cancel: CancelReply = bob.ask(Verb::CallCancel, &CancelRequest { call }, ANSWER).await.unwrap();
    assert_eq!(cancel.state, CallState::Failed);
    let again: RedriveReply = bob.ask(Verb::CallRedrive, &RedriveRequest::unchanged(vec![call]), ANSWER).await.unwrap();
    assert_eq!(again.results[0].status, SubmitStatus::Existing);
    let forget = ForgetTool { tool: "echo".to_owned() };
    let code = |answer: Result<ForgetToolReply, QueueError>| match answer {
        Err(QueueError::Api(ApiError { code, .. })) => code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(bob.ask(Verb::ToolForget, &forget, ANSWER).await), Code::WrongState);
    assert_eq!(code(eve.ask(Verb::ToolForget, &forget, ANSWER).await), Code::Forbidden, "tools belong to no tenant");
    let ids: Vec<String> = redrive.calls.iter().map(ToString::to_string).collect();
    let done = |result: &str| Some(result.to_owned());
    let view: CallView = bob
        .ask(Verb::CallGet, &GetRequest { call: reply.results[0].call.unwrap(), language: Language::En }, ANSWER)
        .await
        .unwrap();
    assert_eq!(view.submitted_by.as_deref(), Some("bob"), "who had it run again");
    assert_eq!(stack.get(call).await.submitted_by.as_deref(), Some("local"));
    assert_eq!(
        actions(&stack).await,
        [
            ("bob".into(), "calls.redrive".into(), ids, done("done"), Some(1)),
            ("bob".into(), "calls.cancel".into(), vec![call.to_string()], done("done"), Some(0)),
            ("bob".into(), "calls.redrive".into(), vec![call.to_string()], done("done"), Some(0)),
            ("bob".into(), "tools.forget".into(), vec!["echo".into()], done("wrong_state"), Some(0)),
            ("eve".into(), "tools.forget".into(), vec!["echo".into()], done("forbidden"), Some(0)),
        ]
    );
    stack.finish().await;
}

/// One row for each, written with its tombstone and completed with it.
#[tokio::test]
async fn an_erasure_is_one_action_however_often_it_is_asked_for() {
    let mut stack = Stack::start().await;
    let worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let (ann, bob) = (stack.user("acme", "ann").await, stack.user("globex", "bob").await);
    let call = json!({"tool": "read", "arguments": {}, "conversation": "c"});
    for _ in 0..2 {
        let result: SubmitResult = ann.ask(Verb::CallSubmit, &call, ANSWER).await.unwrap();
        result.call.unwrap();
    }
    worker.beat().await;
    stack.leaves_jobs();
    let of_conversation =
        Forget { conversation: Some("c".to_owned()), erasure: Some(uuid::Uuid::now_v7()), ..Forget::default() };
    let counted = Forget { dry_run: true, ..of_conversation.clone() };
    ann.ask::<_, ForgetReply>(Verb::ConversationForget, &counted, ANSWER).await.unwrap();
    assert_eq!(actions(&stack).await, [], "counting changes nothing");
    let refused = ann.ask::<_, ForgetReply>(Verb::ConversationForget, &of_conversation, ANSWER).await;
    assert!(matches!(refused, Err(QueueError::Api(ApiError { code: Code::WrongState, .. }))), "{refused:?}");
    let cancelled = Forget { cancel: true, ..of_conversation };
    let of_tenant = Forget { erasure: Some(uuid::Uuid::now_v7()), ..Forget::default() };
    for (user, verb, request) in [
        (&ann, Verb::ConversationForget, &cancelled),
        (&ann, Verb::ConversationForget, &cancelled),
        (&bob, Verb::TenantForget, &of_tenant),
    ] {
        until("it is erased", async || {
            let reply = user.ask::<_, ForgetReply>(verb, request, ANSWER).await;
            reply.ok().filter(|reply| reply.done)
        })
        .await;
    }
    let row = |user: &str, verb: &str, target: &str, result: &str, changed| {
        (user.to_owned(), verb.to_owned(), vec![target.to_owned()], Some(result.to_owned()), Some(changed))
    };
    assert_eq!(
        actions(&stack).await,
        [
            row("ann", "conversations.forget", "c", "wrong_state", 0),
            row("ann", "conversations.forget", "c", "done", 2),
            row("bob", "tenants.forget", "globex", "done", 0),
        ]
    );
    stack.finish().await;
}

/// Actions of bob that are on record: what changed something, and the others.
async fn kept(stack: &Stack) -> (i64, i64) {
    sqlx::query_as(
        "SELECT count(*) FILTER (WHERE effective), count(*) FILTER (WHERE NOT effective) FROM actions WHERE user_name = 'bob'",
    )
    .fetch_one(stack.db())
    .await
    .unwrap()
}

/// Actions that are on record already: all of `fill`, newest last.
async fn fill(stack: &Stack, rows: i64, result: &str, changed: i32) {
    sqlx::query(
        "INSERT INTO actions (tenant, user_name, role, door, verb, targets, target_count, result, changed)
         SELECT 'default', user_name, 'submit', 'nats', 'calls.cancel', '{x}', 1, $2, $3
         FROM generate_series(1, $1), (VALUES ('bob'), ('ann')) AS u (user_name)",
    )
    .bind(rows)
    .bind(result)
    .bind(changed)
    .execute(stack.db())
    .await
    .unwrap();
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
            let answer: Result<CancelReply, QueueError> = bob.ask(Verb::CallCancel, &cancel, ANSWER).await;
            assert!(matches!(answer, Err(QueueError::Api(error)) if error.code == Code::CallNotFound));
        }
        let (effective, others) = kept(&stack).await;
        (effective == 100_000 && others < 10_050).then_some(())
    })
    .await;
    assert!(kept(&stack).await.1 >= 10_000, "the newest stay");
    let of_ann: i64 =
        sqlx::query_scalar("SELECT count(*) FROM actions WHERE user_name = 'ann'").fetch_one(stack.db()).await.unwrap();
    assert_eq!(of_ann, 110_040, "nobody pushes out what others did");
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
    sqlx::query("ALTER TABLE actions RENAME TO elsewhere").execute(stack.db()).await.unwrap();
    let bob = stack.user("default", "bob").await;
    let answer: Result<CancelReply, QueueError> = bob.ask(Verb::CallCancel, &CancelRequest { call }, ANSWER).await;
    assert!(matches!(answer, Err(QueueError::Api(error)) if error.code == Code::Internal));
    assert_eq!(stack.get(call).await.state, CallState::Ready);
    sqlx::query("ALTER TABLE elsewhere RENAME TO actions").execute(stack.db()).await.unwrap();
    stack.cancel(call).await;
    stack.finish().await;
}
