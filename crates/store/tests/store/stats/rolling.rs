//! Rolling up: exactly once, whatever is interrupted, comes late, or is deleted.

use std::{future::poll_fn, pin::Pin, task::Poll};

use chrono::{DurationRound, TimeDelta, Utc};
use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_proto::ErrorClass;
use redial_store::stats::{By, Group, GroupSums, RolledUp, Stats, StatsQuestion};
use redial_testkit::until;

use super::{
    fixture::Fixture,
    made::{Attempt, Made},
};

/// Calls of every kind, in three hours.
async fn of_every_kind() -> Fixture {
    let fixture = Fixture::empty().await;
    let at = |hour| fixture.begin + TimeDelta::hours(hour) + TimeDelta::minutes(5);
    let mut retried = Made::new("book", at(1)).failed("failed", ErrorClass::BusinessRule).of_acme();
    let unavailable = Attempt { worker: "w-2".to_owned(), class: Some(ErrorClass::Unavailable), duration_ms: None };
    retried.attempts.insert(0, unavailable);
    let cancelled = Made::new("search", at(1)).failed("cancelled", ErrorClass::Cancelled);
    let mut calls = vec![
        Made::new("book", at(0)),
        Made::new("book", at(0)).of_acme(),
        retried,
        Made { attempts: Vec::new(), ..cancelled },
        Made::new("search", at(2)).failed("refused", ErrorClass::InvalidArguments),
        Made::new("no_such", at(2)).failed("refused", ErrorClass::UnknownTool),
        Made::new("search", at(2)).failed("unknown", ErrorClass::Lost),
    ];
    // Of an answer all of its usage is known, or a part, or nothing; or it is not what this version can read.
    let replies = [
        r#"{"text": "\u0000\ud800 hi", "usage": {"input_tokens": 10, "output_tokens": 3, "cost_micros": 250}}"#,
        r#"{"text": "\"usage\":{\"cost_micros\":9}", "usage": {"input_tokens": 5}}"#,
        r#"{"text": "hi", "usage": {}}"#,
        r#"{"text": "hi"}"#,
        r#"{"usage": {"cost_micros": "dear"}}"#,
        r#"["not an answer"]"#,
    ];
    let turn = |reply: &str| Made { reply: Some(reply.to_owned()), ..Made::new("model-small", at(0)) };
    calls.extend(replies.map(turn));
    for call in calls {
        fixture.add(call).await;
    }
    fixture
}

/// What is not zero of an answer, a line for each group.
fn lines(fixture: &Fixture, stats: &Stats) -> Vec<String> {
    assert!(stats.is_complete);
    let line = |(group, sums): &(Group, GroupSums)| {
        let name = match group {
            Group::Hour(at) => format!("hour {}", (*at - fixture.begin).num_hours()),
            Group::Name(name) => name.clone(),
            Group::Both(..) => panic!("nothing is asked for by two"),
        };
        let (calls, attempts, usage) = (&sums.calls, &sums.attempts, &sums.calls.usage);
        let figures = [
            ("calls", calls.calls),
            ("retries", calls.retries),
            ("p50", calls.durations.quantile(0.5).unwrap_or(0)),
            ("answers", usage.answers),
            ("cost", usage.cost_micros),
            ("without cost", usage.cost_unknown),
            ("input", usage.input_tokens),
            ("without tokens", usage.tokens_unknown),
            ("attempts", attempts.attempts),
            ("failed attempts", attempts.failed),
            ("p50", attempts.durations.quantile(0.5).unwrap_or(0)),
        ];
        let ends = sums.states.iter().map(|(state, calls)| (state.as_str(), *calls));
        let figures = ends.chain(figures).filter(|(_, number)| *number > 0);
        format!("{name}: {}", figures.map(|(what, number)| format!("{what} {number}")).collect::<Vec<_>>().join(", "))
    };
    stats.groups.iter().map(line).collect()
}

/// The answers to every kind of question.
async fn answers(fixture: &Fixture) -> Vec<Vec<String>> {
    let question = |by| fixture.question(by);
    let hour = |hours| fixture.begin + TimeDelta::hours(hours);
    let mut answers = Vec::new();
    for question in [
        question(By::Tool),
        question(By::Class),
        question(By::Model),
        question(By::Worker),
        question(By::Hour),
        StatsQuestion { tool: Some("book".to_owned()), ..question(By::Tool) },
        StatsQuestion { tenant: Some("acme".to_owned()), ..question(By::Worker) },
        StatsQuestion { since: hour(1), until: Some(hour(2)), ..question(By::Tool) },
    ] {
        answers.push(lines(fixture, &fixture.ask(&question).await));
    }
    answers
}

#[tokio::test]
async fn figures_are_those_of_the_calls_before_during_and_after_the_roll_up_and_outlive_them() {
    const TURNS: &str = "p50 12, answers 6, cost 250, without cost 5, input 15, without tokens 5";
    let fixture = of_every_kind().await;
    assert_eq!(fixture.store.rolled_until().await.unwrap(), None);
    let live = answers(&fixture).await;
    let book = "book: failed 1, succeeded 2, calls 3, retries 1, p50 12";
    let wanted: [Vec<String>; 8] = [
        vec![
            "(unknown tool): refused 1, calls 1".to_owned(),
            book.to_owned(),
            format!("model-small: succeeded 6, calls 6, {TURNS}"),
            "search: cancelled 1, refused 1, unknown 1, calls 3, p50 12".to_owned(),
        ],
        vec![
            "business_rule: failed 1, calls 1, retries 1, p50 12".to_owned(),
            "cancelled: cancelled 1, calls 1".to_owned(),
            "invalid_arguments: refused 1, calls 1".to_owned(),
            "lost: unknown 1, calls 1, p50 12".to_owned(),
            format!("succeeded: succeeded 8, calls 8, {TURNS}"),
            "unknown_tool: refused 1, calls 1".to_owned(),
        ],
        vec![format!("small: succeeded 6, calls 6, {TURNS}")],
        vec!["w-1: attempts 10, failed attempts 2, p50 7".to_owned(), "w-2: attempts 1, failed attempts 1".to_owned()],
        vec![
            format!("hour 0: succeeded 8, calls 8, {TURNS}"),
            "hour 1: cancelled 1, failed 1, calls 2, retries 1, p50 12".to_owned(),
            "hour 2: refused 2, unknown 1, calls 3, p50 12".to_owned(),
        ],
        vec![book.to_owned()],
        vec!["w-1: attempts 2, failed attempts 1, p50 7".to_owned(), "w-2: attempts 1, failed attempts 1".to_owned()],
        vec!["book: failed 1, calls 1, retries 1, p50 12".to_owned(), "search: cancelled 1, calls 1".to_owned()],
    ];
    assert_eq!(live, wanted);
    let middle = fixture.begin + TimeDelta::minutes(80);
    assert_eq!(fixture.roll_up(middle, 3).await, 10);
    assert_eq!(fixture.store.rolled_until().await.unwrap(), Some(middle));
    assert_eq!(answers(&fixture).await, live, "half rolled up");
    assert_eq!(fixture.roll_up(fixture.end(), 3).await, 3);
    assert_eq!(answers(&fixture).await, live, "rolled up");
    let tables = async || {
        let rows = "SELECT c::text FROM call_stats c UNION ALL SELECT a::text FROM attempt_stats a ORDER BY 1";
        sqlx::query_scalar::<_, String>(rows).fetch_all(&fixture.db).await.unwrap()
    };
    let before = tables().await;
    assert_eq!(fixture.store.roll_up(fixture.end(), 60).await.unwrap(), RolledUp::Done);
    assert_eq!(fixture.store.roll_up(middle, 60).await.unwrap(), RolledUp::Done, "an earlier bound takes nothing back");
    assert_eq!(fixture.store.rolled_until().await.unwrap(), Some(fixture.end()));
    assert_eq!(tables().await, before);
    // Retention deletes them.
    sqlx::raw_sql("DELETE FROM attempts; DELETE FROM calls").execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.roll_up(fixture.end() + TimeDelta::hours(1), 50).await, 0);
    assert_eq!(answers(&fixture).await, live, "deleted");
}

#[tokio::test]
async fn a_step_that_is_cut_off_counts_once_or_not_at_all() {
    let fixture = Fixture::filled(400).await;
    let mut random = StdRng::seed_from_u64(3);
    let mut cut = 0;
    for _ in 0..60 {
        // Dropped, it closes its connection, as the end of the process does.
        // How many waits a step has depends on the machine: some of these are too few, and some enough.
        let waits = 1 << random.random_range(0..8);
        let step = polled(Box::pin(fixture.store.roll_up(fixture.end(), 9)), waits).await;
        cut += usize::from(step.is_none());
    }
    assert!((1..60).contains(&cut), "{cut} of 60 steps were cut off");
    fixture.roll_up(fixture.end(), 50).await;
    fixture.assert_counted(400).await;
}

/// What a future returns; `None` if it has to wait more often than this.
async fn polled<F: Future>(mut future: Pin<Box<F>>, mut waits: u32) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if waits == 0 => Poll::Ready(None),
        Poll::Pending => {
            waits -= 1;
            Poll::Pending
        }
    })
    .await
}

#[tokio::test]
async fn one_that_is_at_it_keeps_the_others_away_and_none_waiting() {
    let fixture = Fixture::filled(10).await;
    let mut other = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT FROM stats_progress FOR UPDATE").execute(&mut *other).await.unwrap();
    assert_eq!(fixture.store.roll_up(fixture.end(), 5).await.unwrap(), RolledUp::Busy);
    fixture.assert_counted(10).await;
    other.rollback().await.unwrap();
    assert_eq!(fixture.roll_up(fixture.end(), 5).await, 10);
}

#[tokio::test]
async fn a_fence_is_passed_once_the_transactions_before_it_are_over() {
    let fixture = Fixture::empty().await;
    let late = Made::new("late", fixture.begin + TimeDelta::minutes(1));
    let mut transaction = fixture.db.begin().await.unwrap();
    late.write(&mut transaction).await;
    let fence = fixture.store.fence().await.unwrap();
    assert!(fence.at <= Utc::now() + TimeDelta::minutes(1));
    for _ in 0..3 {
        // Later transactions come and go.
        fixture.add(Made::new("early", fixture.begin)).await;
        assert!(!fence.is_passed_by(&fixture.store.fence().await.unwrap()), "a call of before may still appear");
    }
    transaction.commit().await.unwrap();
    // One that begins later holds nothing up.
    let mut later = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT pg_current_xact_id()").execute(&mut *later).await.unwrap();
    // Transactions of other tests on this server hold it up, too.
    until("the fence is passed", async || fence.is_passed_by(&fixture.store.fence().await.unwrap()).then_some(()))
        .await;
    assert_eq!(fixture.roll_up(fixture.end(), 100).await, 4);
    fixture.assert_counted(4).await;
    later.rollback().await.unwrap();
}

#[tokio::test]
async fn old_statistics_are_deleted_and_those_of_workers_earlier() {
    let fixture = Fixture::empty().await;
    for days in [0, 36, 399, 401] {
        fixture.add(Made::new(&format!("days_{days}"), fixture.begin - TimeDelta::days(days))).await;
    }
    let now = fixture.begin + TimeDelta::hours(1);
    sqlx::query("UPDATE stats_progress SET rolled_until = $1")
        .bind(now - TimeDelta::days(500))
        .execute(&fixture.db)
        .await
        .unwrap();
    assert_eq!(fixture.roll_up(now, 50).await, 3, "what would be deleted at once is not counted");
    let later = now + TimeDelta::days(2);
    while fixture.store.delete_old_stats(later, 1).await.unwrap() > 0 {}
    let tools = async |table: &str| -> Vec<String> {
        let query = format!("SELECT tool FROM {table} ORDER BY hour");
        sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_all(&fixture.db).await.unwrap()
    };
    assert_eq!(tools("call_stats").await, ["days_36", "days_0"]);
    assert_eq!(tools("attempt_stats").await, ["days_0"]);
}

#[tokio::test]
async fn calls_that_cannot_be_read_in_time_can_be_left_out() {
    let fixture = Fixture::empty().await;
    let first = Made::new("first", fixture.begin);
    let at = first.finished_at;
    fixture.add(first).await;
    fixture.add(Made::new("second", fixture.begin + TimeDelta::seconds(1))).await;
    assert_eq!(fixture.store.leave_out_of_stats(fixture.begin).await.unwrap(), None, "nothing ended before");
    assert_eq!(fixture.store.leave_out_of_stats(fixture.end()).await.unwrap(), Some(at));
    assert_eq!(fixture.roll_up(fixture.end(), 50).await, 1);
    let groups = fixture.ask(&fixture.question(By::Tool)).await.groups;
    assert_eq!(groups.len(), 1, "{groups:?}");
}

#[tokio::test]
async fn a_clock_that_went_ahead_for_a_while_hides_and_doubles_no_call() {
    let mut fixture = Fixture::filled(100).await;
    assert_eq!(fixture.store.set_back_stats().await.unwrap(), None);
    fixture.begin = Utc::now().duration_trunc(TimeDelta::hours(1)).unwrap() - TimeDelta::hours(1);
    fixture.add(Made::new("while_ahead", Utc::now() + TimeDelta::days(2))).await;
    let rolled = async || fixture.store.rolled_until().await.unwrap().unwrap_or(fixture.begin);
    while rolled().await < Utc::now() + TimeDelta::days(2) {
        fixture.store.roll_up(Utc::now() + TimeDelta::days(3), 50).await.unwrap();
    }
    fixture.store.roll_up(Utc::now() + TimeDelta::days(3), 50).await.unwrap();
    let days_ahead = "SELECT count(*) FROM stats_progress WHERE days_until > now()";
    assert_eq!(fixture.count(days_ahead).await, 1);
    // The clock is right again.
    fixture.add(Made::new("afterwards", Utc::now())).await;
    assert!(!fixture.ask(&fixture.question(By::Tool)).await.is_complete);
    let from = fixture.store.set_back_stats().await.unwrap().unwrap();
    assert!(from <= Utc::now() - TimeDelta::hours(1), "{from}");
    assert_eq!(fixture.store.set_back_stats().await.unwrap(), None);
    let days = "SELECT count(*) FROM model_day_stats WHERE day >= date_trunc('day', $1, 'UTC')";
    let days: i64 = sqlx::query_scalar(days).bind(from).fetch_one(&fixture.db).await.unwrap();
    assert_eq!((days, fixture.count(days_ahead).await), (0, 0), "days of models are added up again, too");
    let stats = fixture.ask(&fixture.question(By::Tool)).await;
    assert!(stats.is_complete);
    assert_eq!(stats.groups.iter().map(|(_, sums)| sums.calls.calls).sum::<u64>(), 1, "{stats:?}");
    assert_eq!(fixture.roll_up(Utc::now(), 50).await, 1);
    let counted = fixture.count("SELECT sum(calls)::bigint FROM call_stats").await;
    assert_eq!(counted, 101, "the one of the future counts when its time has come");
}
