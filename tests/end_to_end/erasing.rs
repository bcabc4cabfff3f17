//! Erasing calls while workers, reports and the database get in the way.

use std::time::Duration;

use redial_proto::{
    CallId, ErrorClass, Failure, Forget, ForgetCounts, ForgetReply, Submission, SubmitResult, ToolSpec, subjects,
};
use redial_queue::QueueError;
use redial_store::{NewErasure, Phase, Purpose, Scope};
use redial_testkit::{Stack, arguments, until};
use serde_json::json;
use uuid::Uuid;

use crate::by_hand::Hand;

const ANSWER: Duration = Duration::from_secs(30);

fn of(tenant: &str, conversation: Option<&str>) -> Forget {
    let (tenant, conversation) = (Some(tenant.to_owned()), conversation.map(str::to_owned));
    Forget { tenant, conversation, erasure: Some(Uuid::now_v7()), ..Forget::default() }
}

async fn ask(stack: &Stack, request: &Forget) -> Result<ForgetReply, QueueError> {
    stack.queue().request(subjects::FORGET, request, ANSWER).await
}

/// Sends the request until it is done, whatever is in the way.
async fn forget(stack: &Stack, request: &Forget) -> ForgetReply {
    until("it is erased", async || ask(stack, request).await.ok().filter(|reply| reply.done)).await
}

/// Submits a call of which the checker does not learn: it will not be on record.
async fn submit(stack: &Stack, conversation: &str) -> CallId {
    let mut submission = Submission::new("read", arguments(json!({"secret": 1})));
    submission.conversation = Some(conversation.to_owned());
    let result: SubmitResult = stack.queue().request(subjects::SUBMIT, &submission, ANSWER).await.unwrap();
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
            SELECT gen_random_uuid(), now(), now(), 1, false, 'read', 'default', 'read', $1, $2, gen_random_uuid(), '{}',
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
    let request = of("default", Some("c"));
    let refused = ask(&stack, &request).await.unwrap_err().to_string();
    assert!(refused.contains("has work that has not ended") && refused.contains("wrong_state"), "{refused}");
    assert_eq!((count(&stack, "calls").await, count(&stack, "tombstones").await), (2, 0));

    // Its worker says nothing, so the lease has to end.
    let erased = forget(&stack, &Forget { cancel: true, ..request.clone() }).await;
    assert_eq!((erased.counts.calls, erased.counts.attempts), (2, 1));
    worker.report(running, 1, Ok(r#""secret""#)).await;
    worker.report(running, 1, Err(Failure::new(ErrorClass::ToolFailed, "secret"))).await;
    worker.report(waiting, 1, Ok(r#""secret""#)).await;
    for table in ["calls", "attempts", "late_reports", "task_inbox", "dead_letters"] {
        assert_eq!(count(&stack, table).await, 0, "{table}");
    }
    assert!(worker.claim(waiting, 1).await.is_empty(), "its job is worth nothing");
    stack.redrive(running).await.error.expect("there is no such call");
    assert_eq!(forget(&stack, &request).await.counts, erased.counts);
    let job = worker.job().await;
    assert_eq!(job.call, waiting, "it was still on the stream");
    stack.finish().await;
}

#[tokio::test]
async fn a_request_says_what_is_wrong_with_it() {
    let stack = Stack::start().await;
    let nothing = Forget { tenant: None, ..of("", None) };
    let no_id = Forget { erasure: None, ..of("acme", None) };
    let odd = Forget { conversation: Some("\u{7}".into()), ..of("acme", None) };
    for (request, part) in [(nothing, "nothing is named"), (no_id, "erasure is missing"), (odd, "conversation is ")] {
        let error = ask(&stack, &request).await.unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("allowed: "), "{error}");
    }
    let first = of("acme", None);
    forget(&stack, &first).await;
    let error = ask(&stack, &Forget { erasure: first.erasure, ..of("other", None) }).await.unwrap_err().to_string();
    assert!(error.contains("is of something else"), "{error}");
    stack.finish().await;
}

#[tokio::test]
async fn many_calls_are_erased_in_steps_and_those_of_others_stay() {
    let stack = Stack::start().await;
    write(&stack, "acme", "c", 12_000).await;
    write(&stack, "other", "c", 3_000).await;
    write(&stack, "acme", "d", 500).await;
    let one = forget(&stack, &of("acme", Some("d"))).await;
    assert_eq!(one.counts, counts(500));
    let request = of("acme", None);
    let (mut counted, mut dry) = (ForgetCounts::default(), Forget { dry_run: true, ..request.clone() });
    loop {
        let reply = ask(&stack, &dry).await.unwrap();
        counted.add(&reply.counts);
        if reply.done {
            break;
        }
        dry.after = reply.next;
    }
    assert_eq!(counted, counts(12_000));
    assert_eq!(forget(&stack, &request).await.counts, counted);
    let left = [count(&stack, "calls").await, count(&stack, "attempts").await, count(&stack, "late_reports").await];
    assert_eq!(left, [3_000, 6_000, 3_000]);
    assert_eq!(count(&stack, "calls WHERE tenant = 'acme'").await, 0);
    clear(&stack).await;
    stack.finish().await;
}

/// Each step is a transaction, and the next one continues where the last one that was committed ended.
#[tokio::test]
async fn what_dies_between_two_steps_is_continued_and_counts_once() {
    let stack = Stack::start().await;
    write(&stack, "acme", "c", 2_000).await;
    write(&stack, "other", "c", 100).await;
    let store = stack.store(Purpose::Dispatch).await;
    let request = of("acme", Some("c"));
    let scope = Scope { tenant: "acme".into(), conversation: Some("c".into()) };
    let (id, actor) = (request.erasure.unwrap(), "ann".to_owned());
    let begun = store.begin_erasure(&NewErasure { id, scope, actor, cancels: false }).await.unwrap().unwrap();
    store.looked_at(&begun, None).await.unwrap();
    let mut at = begun;
    while at.counts.calls == 0 || at.phase != Phase::Calls {
        at = store.erase_step(id, 300).await.unwrap().unwrap();
    }
    assert!(at.counts.calls > 0 && at.counts.calls < 2_000);
    let dropped = tokio::time::timeout(Duration::from_millis(1), store.erase_step(id, 300)).await;
    let finished = forget(&stack, &request).await;
    assert_eq!(finished.counts, counts(2_000), "{dropped:?}");
    assert_eq!(count(&stack, "calls").await, 100);
    clear(&stack).await;
    stack.finish().await;
}

#[tokio::test]
async fn an_outage_of_postgres_only_delays_an_erasure() {
    let mut stack = Stack::start_own().await;
    write(&stack, "acme", "c", 30_000).await;
    let request = of("acme", None);
    let queue = stack.queue().clone();
    let (asked, asking) = (
        request.clone(),
        tokio::spawn({
            let request = request.clone();
            async move {
                let reply = queue.request::<_, ForgetReply>(subjects::FORGET, &request, ANSWER).await;
                reply.is_ok_and(|reply| reply.done)
            }
        }),
    );
    until("it has begun", async || {
        let some = sqlx::query_scalar::<_, bool>("SELECT calls > 0 FROM tombstones").fetch_optional(stack.db());
        some.await.ok().flatten().filter(|begun| *begun)
    })
    .await;
    stack.servers.kill_postgres().await;
    stack.servers.start_postgres().await;
    let interrupted = !asking.await.unwrap();
    let erased = forget(&stack, &asked).await;
    assert_eq!(erased.counts, counts(30_000), "interrupted: {interrupted}");
    assert_eq!(count(&stack, "calls").await, 0);
    stack.finish().await;
}
