//! Reports of calls that workers name: late ones, and those that cannot be read. A sender may name many, and any.

use redial_proto::{ApiError, CallId, Code, ErrorClass, Failure, JobRef, WorkerId};
use redial_store::{DeadLetter, LateReport, Rejections};
use sqlx::PgPool;
use uuid::Uuid;

use crate::fixture::Fixture;

/// Writes ended calls of a tenant; returns their ids.
async fn ended_calls(db: &PgPool, tenant: &str, calls: usize) -> Vec<CallId> {
    let ids: Vec<Uuid> = (0..calls).map(|_| Uuid::now_v7()).collect();
    sqlx::query(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments, published_at,
                            finished_at, state, attempt, worker)
         SELECT id, now(), now(), 1, false, 'read', 'default', 'read', $2, '{}', now(), now(), 'failed', 2, 'holder-1'
         FROM UNNEST($1::uuid[]) id",
    )
    .bind(&ids)
    .bind(tenant)
    .execute(db)
    .await
    .unwrap();
    ids.into_iter().map(CallId).collect()
}

fn report(call: CallId, attempt: u32, worker: &str) -> LateReport {
    let worker: WorkerId = worker.parse().unwrap();
    LateReport { job: JobRef { call, attempt }, worker, result: Ok("1".to_owned()) }
}

fn letter<'a>(calls: impl IntoIterator<Item = &'a CallId>) -> DeadLetter {
    let text = calls.into_iter().map(|call| format!(r#"{{"call":"{call}"}}"#)).collect::<Vec<_>>().concat();
    let mut rejections = Rejections::default();
    rejections.add(None, &ApiError::new(Code::InvalidMessage, "not a batch of reports"));
    DeadLetter::of_results("redial.results.tools", text.into_bytes(), rejections)
}

/// Returns the messages on record with their sizes and tenants, in order.
async fn letters(db: &PgPool) -> Vec<(String, bool, Option<String>)> {
    let rows = sqlx::query_as("SELECT message, payload <> '', tenant FROM dead_letters ORDER BY id");
    rows.fetch_all(db).await.unwrap()
}

fn row(message: &str, is_kept: bool, tenant: Option<&str>) -> (String, bool, Option<String>) {
    (message.to_owned(), is_kept, tenant.map(str::to_owned))
}

/// As many as one batch of messages can hold. What takes time in the square of that is ended by the server.
#[tokio::test]
async fn many_calls_are_named_at_once() {
    let fixture = Fixture::open().await;
    let calls = ended_calls(&fixture.db, "acme", 16_384).await;
    let late: Vec<LateReport> = calls.iter().map(|&call| report(call, 1, "tools-1")).collect();
    assert_eq!(fixture.store.insert_late_reports(&late).await.unwrap().len(), 16_384);
    assert_eq!(fixture.store.insert_late_reports(&late).await.unwrap(), [], "each of them once");
    let mut named: Vec<DeadLetter> = calls.chunks(1_000).map(letter).collect();
    fixture.store.insert_dead_letters(&mut named).await.unwrap();
    assert_eq!(letters(&fixture.db).await, vec![row("not a batch of reports", true, Some("acme")); 17]);
}

#[tokio::test]
async fn a_message_that_names_too_many_calls_leaves_nothing_but_that_it_came() {
    let fixture = Fixture::open().await;
    let calls = ended_calls(&fixture.db, "acme", 9_000).await;
    let other = ended_calls(&fixture.db, "other", 1).await;
    let gone = CallId::generate();
    let both = [calls[0], other[0]];
    let mut named = vec![letter(&calls), letter(&both), letter([&calls[0], &gone]), letter(&calls[..2])];
    fixture.store.insert_dead_letters(&mut named).await.unwrap();
    let found = letters(&fixture.db).await;
    assert_eq!(
        found,
        [
            row("it names too many calls, so its content was not kept", false, None),
            row("not a batch of reports", true, None),
            row("it names a call that is not on record, so its content was not kept", false, Some("acme")),
            row("not a batch of reports", true, Some("acme")),
        ]
    );
}

/// The sender chooses the number of the attempt, so it could send reports of one call without end.
#[tokio::test]
async fn reports_of_attempts_that_the_sender_never_had_are_few() {
    let fixture = Fixture::open().await;
    let calls = ended_calls(&fixture.db, "acme", 2).await;
    let tried = "INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, class)
                 VALUES ($1, 1, 'honest-1', now(), now(), 'lost')";
    sqlx::query(tried).bind(calls[0].0).execute(&fixture.db).await.unwrap();
    let lies: Vec<LateReport> = (1..=100).map(|n| report(calls[0], n, "liar-1")).collect();
    let (first, rest) = lies.split_at(4);
    assert_eq!(fixture.store.insert_late_reports(first).await.unwrap().len(), 4);
    assert_eq!(fixture.store.insert_late_reports(rest).await.unwrap().len(), 6);
    assert_eq!(fixture.store.insert_late_reports(&lies).await.unwrap(), []);
    // Of others nothing is displaced: one that had the attempt, one that has it, and the reports of another call.
    let honest = [report(calls[0], 1, "honest-1"), report(calls[0], 2, "holder-1"), report(calls[1], 7, "liar-1")];
    let kept = fixture.store.insert_late_reports(&honest).await.unwrap();
    assert_eq!(kept, honest.each_ref().map(|report| report.job));
    // What the attempt ended with was only sent twice.
    let lost = LateReport { result: Err(Failure::new(ErrorClass::Lost, "")), ..report(calls[0], 1, "honest-1") };
    assert_eq!(fixture.store.insert_late_reports(&[lost]).await.unwrap(), []);
    let twice = [report(calls[1], 2, "holder-1"), report(calls[1], 2, "holder-1")];
    assert_eq!(fixture.store.insert_late_reports(&twice).await.unwrap().len(), 1);
}
