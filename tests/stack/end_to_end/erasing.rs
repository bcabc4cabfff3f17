//! Erasing calls while workers, reports and the database get in the way.

use std::time::Duration;

use redial_proto::{
    CallId, Caller, Door, ErrorClass, Failure, Forget, ForgetCounts, ForgetReply, Submission, SubmitResult, ToolSpec,
    UserRole, subjects::Verb,
};
use redial_queue::{Queue, QueueError};
use redial_store::{Begun, NewErasure, Phase, Purpose};
use redial_test_stack::{Stack, arguments, until};
use serde_json::json;
use uuid::Uuid;

use super::by_hand::Hand;

const ANSWER: Duration = Duration::from_secs(30);

fn of(conversation: Option<&str>) -> Forget {
    let conversation = conversation.map(str::to_owned);
    Forget { conversation, erasure: Some(Uuid::now_v7()), ..Forget::default() }
}

async fn ask(user: &Queue, request: &Forget) -> Result<ForgetReply, QueueError> {
    let verb = if request.conversation.is_some() { Verb::ConversationForget } else { Verb::TenantForget };
    user.ask(verb, request, ANSWER).await
}

/// Sends the request until it is done, whatever is in the way.
async fn forget(user: &Queue, request: &Forget) -> ForgetReply {
    until("it is erased", async || ask(user, request).await.ok().filter(|reply| reply.done)).await
}

/// Submits a call of which the checker does not learn: it will not be on record.
async fn submit(stack: &Stack, conversation: &str) -> CallId {
    let mut submission = Submission::new("read", arguments(json!({"secret": 1})));
    submission.conversation = Some(conversation.to_owned());
    let result: SubmitResult = stack.queue().ask(Verb::CallSubmit, &submission, ANSWER).await.unwrap();
    result.call.unwrap_or_else(|| panic!("{result:?}"))
}

async fn count(stack: &Stack, table: &str) -> i64 {
    let question = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    sqlx::query_scalar(question).fetch_one(stack.db()).await.unwrap()
}

/// Ended calls that were never submitted, each with two attempts and a late report.
async fn write(stack: &Stack, tenant: &str, conversation: &str, calls: i32) {
    let rows = "WITH made AS (
            INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, conversation, key,
                               arguments, published_at, finished_at, state, attempt)
            SELECT ('0000' || substr(gen_random_uuid()::text, 5))::uuid, now(), now(), 1, false, 'read', 'default', 'read', $1, $2, gen_random_uuid(), '{}',
                   now(), now(), 'failed', 2
            FROM generate_series(1, $3)
            RETURNING id
        ), tried AS (
            INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, class)
            SELECT id, n, 'w', now(), now(), 'timeout' FROM made, generate_series(1, 2) n
        )
        INSERT INTO late_reports (call_id, attempt, worker, output) SELECT id, 1, 'w', '1' FROM made";
    sqlx::query(rows).bind(tenant).bind(conversation).bind(calls).execute(stack.db()).await.unwrap();
}

fn counts(calls: u64) -> ForgetCounts {
    ForgetCounts { calls, attempts: 2 * calls, late_reports: calls, keys: calls, ..ForgetCounts::default() }
}

/// Removes what was written past Redial, which the checker does not know.
async fn clear(stack: &Stack) {
    sqlx::raw_sql("TRUNCATE calls, attempts, late_reports").execute(stack.db()).await.unwrap();
}

#[tokio::test]
async fn a_running_call_is_erased_once_it_may_be_cancelled_and_its_report_leaves_nothing() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let running = submit(&stack, "c").await;
    assert_eq!(worker.granted().await.call, running);
    let waiting = submit(&stack, "c").await;
    let request = of(Some("c"));
    let refused = ask(stack.queue(), &request).await.unwrap_err().to_string();
    assert!(refused.contains("has work that has not ended") && refused.contains("wrong_state"), "{refused}");
    assert_eq!((count(&stack, "calls").await, count(&stack, "tombstones").await), (2, 0));

    // Its worker says nothing, so the lease has to end.
    let erased = forget(stack.queue(), &Forget { cancel: true, ..request.clone() }).await;
    assert_eq!((erased.counts.calls, erased.counts.attempts), (2, 1));
    worker.report(running, 1, Ok(r#""secret""#)).await;
    worker.report(running, 1, Err(Failure::new(ErrorClass::ToolFailed, "secret"))).await;
    worker.report(waiting, 1, Ok(r#""secret""#)).await;
    for table in ["calls", "attempts", "late_reports", "task_inbox", "dead_letters"] {
        assert_eq!(count(&stack, table).await, 0, "{table}");
    }
    assert!(worker.claim(waiting, 1).await.is_empty(), "its job is worth nothing");
    stack.redrive(running).await.error.expect("there is no such call");
    assert_eq!(forget(stack.queue(), &request).await.counts, erased.counts);
    let job = worker.job().await;
    assert_eq!(job.call, waiting, "it was still on the stream");
    stack.finish().await;
}

#[tokio::test]
async fn a_request_says_what_is_wrong_with_it() {
    let stack = Stack::start().await;
    let (acme, other) = (stack.user("acme", "ann").await, stack.user("other", "ann").await);
    let no_id = Forget { erasure: None, ..of(None) };
    let odd = of(Some("\u{7}"));
    for (request, part) in [(no_id, "erasure is missing"), (odd, "conversation is ")] {
        let error = ask(&acme, &request).await.unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("allowed: "), "{error}");
    }
    // The verb says which of both is meant, so that a field that was left out does not erase everything.
    for (verb, request, part) in [
        (Verb::ConversationForget, of(None), "conversation is missing"),
        (Verb::TenantForget, of(Some("c")), "a conversation is named"),
    ] {
        let error = acme.ask::<_, ForgetReply>(verb, &request, ANSWER).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let first = of(None);
    forget(&acme, &first).await;
    let error = ask(&other, &first).await.unwrap_err().to_string();
    assert!(error.contains("is of something else"), "{error}");
    stack.finish().await;
}

/// Ids of erasures are no secret, and who knows one must not change what it does.
#[tokio::test]
async fn another_tenant_does_not_change_an_erasure_and_who_makes_it_cancel_is_on_record() {
    let stack = Stack::start().await;
    let (ann, bob) = (stack.user("acme", "ann").await, stack.user("acme", "bob").await);
    let other = stack.user("other", "eve").await;
    let request = of(Some("c"));
    let begun = "INSERT INTO tombstones (id, tenant, conversation, actor, cancels, touched_at)
                 VALUES ($1, 'acme', 'c', 'ann', false, now() + interval '1 h')";
    sqlx::query(begun).bind(request.erasure).execute(stack.db()).await.unwrap();
    let cancelling = Forget { cancel: true, ..request.clone() };
    for (user, wrong) in [(&other, cancelling.clone()), (&ann, Forget { conversation: None, ..cancelling.clone() })] {
        let error = ask(user, &wrong).await.unwrap_err().to_string();
        assert!(error.contains("is of something else"), "{error}");
    }
    assert_eq!(count(&stack, "tombstones WHERE cancels OR until_at IS NOT NULL").await, 0);
    forget(&bob, &cancelling).await;
    forget(&bob, &cancelling).await;
    assert_eq!(count(&stack, "tombstones WHERE cancels").await, 1);
    let acted: Vec<(String, String)> =
        sqlx::query_as("SELECT user_name, result FROM actions ORDER BY id").fetch_all(stack.db()).await.unwrap();
    assert_eq!(acted, [("bob".to_owned(), "done".to_owned())]);
    stack.finish().await;
}

/// Each step is a transaction, and the next one continues where the last one that was committed ended.
#[tokio::test]
async fn what_dies_between_two_steps_is_continued_and_counts_once() {
    let stack = Stack::start().await;
    let acme = stack.user("acme", "ann").await;
    write(&stack, "acme", "c", 2_000).await;
    write(&stack, "other", "c", 100).await;
    let store = stack.store(Purpose::Dispatch).await;
    let request = of(Some("c"));
    let id = request.erasure.unwrap();
    let caller =
        Caller { tenant: acme.tenant().clone(), user: acme.user().clone(), role: UserRole::Admin, door: Door::Nats };
    let (verb, conversation) = (Verb::ConversationForget.name(), Some("c"));
    let new = NewErasure { id, caller: &caller, door: "nats", verb, conversation, cancels: false };
    let Begun::Erasure(begun) = store.begin_erasure(&new).await.unwrap() else { panic!("it is the first one") };
    store.looked_at(&begun, None).await.unwrap();
    let mut at = *begun;
    while at.counts.calls == 0 || at.phase != Phase::Calls {
        at = store.erase_step(id, 300).await.unwrap().unwrap();
    }
    assert!(at.counts.calls > 0 && at.counts.calls < 2_000);
    let dropped = tokio::time::timeout(Duration::from_millis(1), store.erase_step(id, 300)).await;
    let finished = forget(&acme, &request).await;
    assert_eq!(finished.counts, counts(2_000), "{dropped:?}");
    assert_eq!(count(&stack, "calls").await, 100);
    clear(&stack).await;
    stack.finish().await;
}
