//! Redrives by filter: each call runs again once, whatever happens meanwhile.

use std::time::Duration;

use redial_proto::{
    CallId, CancelRedrive, Code, CreateRedrive, RedriveFilter, RedriveId, RedriveState, RedriveView, Submission,
    ToolEffect, subjects::Verb,
};
use redial_queue::Queue;
use redial_store::Purpose;
use redial_test_stack::{Stack, arguments, until};
use serde_json::json;

use super::fixture::{ANSWER, ask};

async fn create(queue: &Queue, request: &CreateRedrive) -> RedriveView {
    ask(queue, Verb::RedriveCreate, request).await.unwrap()
}

fn of_failed(rate: u32, dry_run: bool) -> CreateRedrive {
    let filter = RedriveFilter { tool: Some("tool".to_owned()), ..RedriveFilter::default() };
    CreateRedrive { redrive: RedriveId::generate(), filter, dry_run, rate: Some(rate), at_most: None }
}

/// So many calls that failed.
async fn failed(stack: &Stack, count: u64) -> Vec<CallId> {
    let submissions: Vec<Submission> =
        (0..count).map(|n| Submission::new("tool", arguments(json!({"n": n, "fail": "auth"})))).collect();
    let calls = stack.call_all(&submissions).await;
    for call in &calls {
        stack.wait_for_end(*call).await;
    }
    calls
}

/// A redrive once it is as wanted.
async fn view(stack: &Stack, tenant: &str, redrive: RedriveId, wanted: impl Fn(&RedriveView) -> bool) -> RedriveView {
    let (store, tenant) = (stack.store(Purpose::Audit).await, tenant.parse().unwrap());
    let view = until(&format!("redrive {redrive} gets there"), async || {
        store.of(&tenant).redrive(redrive).await.unwrap().filter(&wanted)
    })
    .await;
    store.close().await;
    view
}

async fn ended(stack: &Stack, redrive: RedriveId) -> RedriveView {
    view(stack, "default", redrive, |view| view.state.is_terminal()).await
}

/// Calls that repeat others.
async fn redriven(stack: &Stack) -> u64 {
    u64::try_from(stack.count("calls WHERE redrive_of IS NOT NULL").await).unwrap()
}

#[tokio::test]
async fn each_call_that_matches_runs_again_once() {
    let mut stack = Stack::with_tool(ToolEffect::Read).await;
    // A second dispatcher works on the same redrives.
    stack.dispatch().await;
    let calls = failed(&stack, 300).await;
    // One was redriven by hand before; the call that repeats it fails, too, and matches in its place.
    let by_hand = stack.redrive(calls[0]).await.call.unwrap();
    stack.wait_for_end(by_hand).await;
    let succeeded = stack.call("tool", json!({})).await;
    stack.output(succeeded).await;

    let dry = create(stack.queue(), &of_failed(1_000, true)).await;
    assert_eq!((dry.state, dry.dry_run), (RedriveState::Counting, true));
    let dry = ended(&stack, dry.redrive).await;
    assert_eq!((dry.state, dry.matched, dry.redriven), (RedriveState::Done, 300, 0));
    assert_eq!(redriven(&stack).await, 1, "a dry run changes nothing");

    let request = of_failed(10_000, false);
    create(stack.queue(), &request).await;
    let done = ended(&stack, request.redrive).await;
    assert_eq!((done.state, done.matched, done.redriven), (RedriveState::Done, 300, 300), "{done:?}");
    assert_eq!((done.existing, done.refused), (0, 0));
    assert_eq!(redriven(&stack).await, 301, "its own calls are not among those that it finds");
    // The same request again is the same redrive, and another one finds the calls that failed again.
    let again = create(stack.queue(), &request).await;
    assert_eq!(again, done);
    let other = CreateRedrive { dry_run: true, ..request };
    let conflict = ask::<RedriveView>(stack.queue(), Verb::RedriveCreate, &other).await.unwrap_err();
    assert_eq!(conflict.code, Code::IdempotencyConflict);
    stack.drained(ANSWER).await;
    stack.finish().await;
}

#[tokio::test]
async fn two_people_who_order_the_same_at_once_run_no_call_again_twice() {
    let mut stack = Stack::with_tool(ToolEffect::Read).await;
    stack.dispatch().await;
    let calls = failed(&stack, 200).await;
    let (one, other) = (of_failed(10_000, false), of_failed(10_000, false));
    tokio::join!(create(stack.queue(), &one), create(stack.queue(), &other));
    let (one, other) = (ended(&stack, one.redrive).await, ended(&stack, other.redrive).await);
    assert_eq!((one.state, other.state), (RedriveState::Done, RedriveState::Done), "{one:?} {other:?}");
    let ids: Vec<uuid::Uuid> = calls.iter().map(|call| call.0).collect();
    let of_these = "SELECT count(*), count(DISTINCT redrive_of) FROM calls WHERE redrive_of = ANY ($1)";
    let (again, of): (i64, i64) = sqlx::query_as(of_these).bind(&ids).fetch_one(stack.db()).await.unwrap();
    assert_eq!((again, of), (200, 200));
    // What they say adds up: none counts a call that the other one ran.
    assert_eq!(redriven(&stack).await, one.redriven + other.redriven, "{one:?} {other:?}");
    stack.drained(ANSWER).await;
    stack.finish().await;
}

#[tokio::test]
async fn nothing_runs_again_after_an_acknowledged_cancel() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    failed(&stack, 30).await;
    let request = of_failed(1, false);
    create(stack.queue(), &request).await;
    view(&stack, "default", request.redrive, |view| view.redriven >= 1).await;
    let cancel = CancelRedrive { redrive: request.redrive };
    let cancelled: RedriveView = ask(stack.queue(), Verb::RedriveCancel, &cancel).await.unwrap();
    assert_eq!(cancelled.state, RedriveState::Cancelled);
    let then = redriven(&stack).await;
    assert!(then < 30 && then == cancelled.redriven, "{then} {cancelled:?}");
    let again: RedriveView = ask(stack.queue(), Verb::RedriveCancel, &cancel).await.unwrap();
    assert_eq!(again, cancelled, "what has ended stays as it is");
    // A redrive that comes after it is carried out by the same loop: by its end a step of the other one would have been seen.
    let next = of_failed(10_000, false);
    create(stack.queue(), &next).await;
    let next = ended(&stack, next.redrive).await;
    assert_eq!(redriven(&stack).await, then + next.redriven);
    assert_eq!(view(&stack, "default", request.redrive, |_| true).await, cancelled);
    stack.drained(ANSWER).await;
    stack.finish().await;
}

/// A dispatcher takes a step and dies; another one takes it then, and what the first one writes late changes nothing.
#[tokio::test]
async fn a_step_that_another_dispatcher_took_over_writes_nothing() {
    let mut stack = Stack::with_tool(ToolEffect::Read).await;
    failed(&stack, 5).await;
    stack.stop_dispatchers().await;
    let store = stack.store(Purpose::Dispatch).await;
    let (tenant, user) = ("default".parse().unwrap(), "alice".parse().unwrap());
    let request = of_failed(100, false);
    store.of(&tenant).create_redrive(&user, &request).await.unwrap();
    let lease = Duration::from_millis(1);
    let first = store.take_redrive(lease).await.unwrap().expect("it is due");
    assert_eq!((first.redrive, first.state), (request.redrive, RedriveState::Counting));
    let second = until("the lease of the first is over", async || store.take_redrive(lease).await.unwrap()).await;
    let step = redial_store::RedriveStep {
        state: RedriveState::Done,
        pass: 0,
        position: None,
        matched: 7,
        refused: 0,
        error: None,
        pause: Duration::ZERO,
    };
    assert_eq!(store.redrive_step(&first, &[], &step, 1_000).await.unwrap(), None);
    let view_now = store.of(&tenant).redrive(request.redrive).await.unwrap().unwrap();
    assert_eq!((view_now.state, view_now.matched), (RedriveState::Counting, 0));
    // The second dies as well. Its lease is over at once; a dispatcher that starts carries on.
    drop(second);
    store.close().await;
    stack.dispatch().await;
    let done = ended(&stack, request.redrive).await;
    assert_eq!((done.matched, done.redriven), (5, 5));
    stack.drained(ANSWER).await;
    stack.finish().await;
}

#[tokio::test]
async fn another_tenants_redrive_does_not_exist() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    failed(&stack, 3).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let request = of_failed(1_000, false);
    create(&acme, &request).await;
    let done = view(&stack, "acme", request.redrive, |view| view.state.is_terminal()).await;
    assert_eq!((done.matched, done.created_by.as_str()), (0, "alice"), "calls of another tenant do not match");
    assert_eq!(redriven(&stack).await, 0);
    let cancel = CancelRedrive { redrive: request.redrive };
    let hidden = ask::<RedriveView>(&globex, Verb::RedriveCancel, &cancel).await.unwrap_err();
    assert_eq!(hidden.code, Code::RedriveNotFound);
    // An id is the tenant's own.
    let same = create(&globex, &request).await;
    assert_eq!(same.created_by, "bob");
    view(&stack, "globex", request.redrive, |view| view.state.is_terminal()).await;
    let actions: Vec<String> =
        stack.values("SELECT tenant || ' ' || verb || ' ' || result FROM actions ORDER BY id").await;
    let wanted =
        ["acme redrives.create done", "globex redrives.cancel redrive_not_found", "globex redrives.create done"];
    assert_eq!(actions, wanted);
    stack.finish().await;
}
