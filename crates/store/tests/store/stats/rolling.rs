//! Rolling up: exactly once, whatever is interrupted, comes late, or is deleted.

use std::{future::poll_fn, pin::Pin, task::Poll};

use chrono::{DurationRound, TimeDelta, Utc};
use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_proto::ErrorClass;
use redial_store::{
    Pass,
    stats::{By, Group, GroupSums, RolledUp, Stats, StatsQuestion},
};

use super::{
    fixture::Fixture,
    made::{Attempt, Made},
};

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

/// Writes what is not zero of an answer, a line for each group.
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

/// Returns the answers to every kind of question.
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
    assert_eq!(step(&fixture, 6).await, RolledUp::Added { calls: 6 });
    assert_eq!(answers(&fixture).await, live, "half rolled up");
    assert_eq!(fixture.roll_up(3).await, 7);
    assert_eq!(answers(&fixture).await, live, "rolled up");
    let tables = async || {
        let rows = "SELECT s::text FROM stats s ORDER BY 1";
        sqlx::query_scalar::<_, String>(rows).fetch_all(&fixture.db).await.unwrap()
    };
    let before = tables().await;
    assert_eq!(step(&fixture, 60).await, RolledUp::Done);
    assert_eq!(tables().await, before);
    // Retention deletes them.
    sqlx::raw_sql("DELETE FROM attempts; DELETE FROM calls").execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.roll_up(50).await, 0);
    assert_eq!(answers(&fixture).await, live, "deleted");
}

/// Takes the first step of a pass.
async fn step(fixture: &Fixture, limit: u32) -> RolledUp {
    fixture.store.roll_up(&mut Pass::default(), limit).await.unwrap()
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
        let step = polled(Box::pin(fixture.store.roll_up(&mut Pass::default(), 9)), waits).await;
        cut += usize::from(step.is_none());
    }
    assert!((1..60).contains(&cut), "{cut} of 60 steps were cut off");
    fixture.roll_up(50).await;
    fixture.assert_counted(400).await;
}

/// Returns what a future returns; `None` if it has to wait more often than this.
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
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('statistics', 0))";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    assert_eq!(step(&fixture, 5).await, RolledUp::Busy);
    fixture.assert_counted(10).await;
    other.rollback().await.unwrap();
    assert_eq!(fixture.roll_up(5).await, 10);
}

/// An end has the time of its statement, and may become visible long after that.
#[tokio::test]
async fn a_long_transaction_holds_nothing_up_and_what_it_ends_counts_once_it_is_committed() {
    let fixture = Fixture::empty().await;
    let late = Made::new("late", fixture.begin + TimeDelta::minutes(1));
    let mut transaction = fixture.db.begin().await.unwrap();
    late.write(&mut transaction).await;
    for n in 1..=3 {
        fixture.add(Made::new("early", fixture.begin + TimeDelta::minutes(n))).await;
        assert_eq!(fixture.roll_up(100).await, 1);
    }
    fixture.assert_counted(3).await;
    transaction.commit().await.unwrap();
    fixture.assert_counted(4).await;
    assert_eq!(fixture.roll_up(100).await, 1);
    fixture.assert_counted(4).await;
}

/// A `pg_dump` keeps rows that were taken: the steps of a pass do not walk over them again.
#[tokio::test]
async fn a_pass_goes_on_behind_what_was_taken() {
    let fixture = Fixture::filled(60).await;
    let mut pass = Pass::default();
    for _ in 0..6 {
        assert_eq!(fixture.store.roll_up(&mut pass, 10).await.unwrap(), RolledUp::Added { calls: 10 });
    }
    fixture.assert_counted(60).await;
    fixture.add(Made::new("next", fixture.begin)).await;
    assert_eq!(fixture.store.roll_up(&mut pass, 10).await.unwrap(), RolledUp::Added { calls: 1 });
    assert_eq!(fixture.store.roll_up(&mut pass, 10).await.unwrap(), RolledUp::Done);
}

#[tokio::test]
async fn old_statistics_are_deleted_and_those_of_workers_earlier() {
    let fixture = Fixture::empty().await;
    for days in [0, 36, 399, 401] {
        fixture.add(Made::new(&format!("days_{days}"), fixture.begin - TimeDelta::days(days))).await;
    }
    assert_eq!(fixture.roll_up(50).await, 4);
    let now = fixture.begin + TimeDelta::hours(1);
    let later = now + TimeDelta::days(2);
    while fixture.store.delete_old_stats(later, 1).await.unwrap() > 0 {}
    let tools = async |kind: &str| -> Vec<String> {
        sqlx::query_scalar("SELECT tool FROM stats WHERE kind = $1 ORDER BY hour")
            .bind(kind)
            .fetch_all(&fixture.db)
            .await
            .unwrap()
    };
    assert_eq!(tools("call").await, ["days_36", "days_0"]);
    assert_eq!(tools("attempt").await, ["days_0"]);
}

#[tokio::test]
async fn a_call_that_cannot_be_read_in_time_can_be_left_out() {
    let fixture = Fixture::empty().await;
    assert_eq!(fixture.store.leave_out_of_stats(&Pass::default()).await.unwrap(), None, "nothing has ended");
    let first = Made::new("first", fixture.begin);
    let id = first.id;
    fixture.add(first).await;
    fixture.add(Made::new("second", fixture.begin + TimeDelta::seconds(1))).await;
    assert_eq!(fixture.store.leave_out_of_stats(&Pass::default()).await.unwrap(), Some(id));
    assert_eq!(fixture.roll_up(50).await, 1);
    let groups = fixture.ask(&fixture.question(By::Tool)).await.groups;
    assert_eq!(groups.len(), 1, "{groups:?}");
}

/// Retention may have deleted what was counted while the clock was ahead: nothing is counted from the history again.
#[tokio::test]
async fn a_clock_that_went_ahead_for_a_while_hides_and_doubles_no_call() {
    let mut fixture = Fixture::filled(100).await;
    fixture.begin = Utc::now().duration_trunc(TimeDelta::hours(1)).unwrap() - TimeDelta::hours(1);
    let ahead = Utc::now() + TimeDelta::days(2);
    fixture.add(Made::new("while_ahead", ahead)).await;
    assert_eq!(fixture.roll_up(50).await, 101);
    sqlx::raw_sql("DELETE FROM attempts; DELETE FROM calls").execute(&fixture.db).await.unwrap();
    // The clock is right again.
    fixture.add(Made::new("afterwards", Utc::now())).await;
    let sum = async || {
        let stats = fixture.ask(&fixture.question(By::Tool)).await;
        assert!(stats.is_complete);
        stats.groups.iter().map(|(_, sums)| sums.calls.calls).sum::<u64>()
    };
    assert_eq!(sum().await, 1, "live");
    assert_eq!(fixture.roll_up(50).await, 1);
    assert_eq!(sum().await, 1, "the one of the future is shown when its time has come");
    assert_eq!(fixture.count("SELECT sum(counts[1])::bigint FROM stats WHERE kind = 'call'").await, 102);
}

/// More are in the queue than are counted while somebody waits.
#[tokio::test]
async fn an_answer_says_until_when_it_is_complete() {
    let fixture = Fixture::filled(4).await;
    let many = "INSERT INTO uncounted_calls
                SELECT gen_random_uuid(), $1::timestamptz + n * interval '1 ms' FROM generate_series(1, 200000) n";
    sqlx::query(many).bind(fixture.begin + TimeDelta::hours(3)).execute(&fixture.db).await.unwrap();
    let stats = fixture.ask(&fixture.question(By::Tool)).await;
    assert!(!stats.is_complete);
    let first_left_out = fixture.begin + TimeDelta::hours(3) + TimeDelta::milliseconds(200_000 - 3);
    assert_eq!(stats.until.timestamp_millis(), first_left_out.timestamp_millis());
    assert_eq!(stats.groups.iter().map(|(_, sums)| sums.calls.calls).sum::<u64>(), 4);
}
