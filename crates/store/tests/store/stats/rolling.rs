//! Rolling up: exactly once, whatever is interrupted, comes late, or is deleted.

use std::{future::poll_fn, pin::Pin, task::Poll};

use chrono::{DurationRound, TimeDelta, Utc};
use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_store::{
    Purpose,
    stats::{By, RolledUp},
};
use redial_testkit::until;

use super::{
    fixture::{Fixture, roll_up},
    made::Made,
};

#[tokio::test]
async fn figures_are_those_of_the_calls_before_during_and_after_the_roll_up_and_outlive_them() {
    let fixture = Fixture::filled(1, 700).await;
    let store = fixture.store(Purpose::Dispatch).await;
    assert_eq!(store.rolled_until().await.unwrap(), None);
    fixture.assert_answers("live").await;
    let middle = fixture.begin + TimeDelta::minutes(80);
    let before = roll_up(&store, middle, 60).await;
    assert_eq!(before, fixture.calls.iter().filter(|made| made.finished_at < middle).count());
    assert_eq!(store.rolled_until().await.unwrap(), Some(middle));
    fixture.assert_answers("half rolled up").await;
    let after = roll_up(&store, fixture.end(), 60).await;
    assert_eq!(before + after, 700);
    fixture.assert_answers("rolled up").await;
    let tables = fixture.tables().await;
    assert_eq!(store.roll_up(fixture.end(), 60).await.unwrap(), RolledUp::Done);
    assert_eq!(store.roll_up(middle, 60).await.unwrap(), RolledUp::Done, "an earlier bound takes nothing back");
    assert_eq!(store.rolled_until().await.unwrap(), Some(fixture.end()));
    assert_eq!(fixture.tables().await, tables);
    fixture.delete_calls().await;
    assert_eq!(roll_up(&store, fixture.end() + TimeDelta::hours(1), 50).await, 0);
    fixture.assert_answers("deleted").await;
    store.close().await;
}

#[tokio::test]
async fn a_step_that_is_cut_off_counts_once_or_not_at_all() {
    let fixture = Fixture::filled(3, 400).await;
    let mut random = StdRng::seed_from_u64(3);
    let store = fixture.store(Purpose::Dispatch).await;
    let mut cut = 0;
    for _ in 0..60 {
        // Dropped, it closes its connection, as the end of the process does.
        // How many waits a step has depends on the machine: some of these are too few, and some enough.
        let waits = 1 << random.random_range(0..8);
        let step = polled(Box::pin(store.roll_up(fixture.end(), 9)), waits).await;
        cut += usize::from(step.is_none());
    }
    assert!((1..60).contains(&cut), "{cut} of 60 steps were cut off");
    roll_up(&store, fixture.end(), 50).await;
    fixture.assert_answers("after interruptions").await;
    store.close().await;
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
async fn dispatchers_that_roll_up_at_the_same_time_count_every_call_once() {
    let fixture = Fixture::filled(4, 600).await;
    let stores = [
        fixture.store(Purpose::Dispatch).await,
        fixture.store(Purpose::Dispatch).await,
        fixture.store(Purpose::Dispatch).await,
    ];
    let [one, two, three] = &stores;
    let end = fixture.end();
    let (one, two, three) = tokio::join!(roll_up(one, end, 20), roll_up(two, end, 20), roll_up(three, end, 20));
    assert_eq!(one + two + three, 600);
    fixture.assert_answers("rolled up by three").await;
    for store in stores {
        store.close().await;
    }
}

#[tokio::test]
async fn one_that_is_at_it_keeps_the_others_away_and_none_waiting() {
    let fixture = Fixture::filled(5, 10).await;
    let mut other = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT FROM stats_progress FOR UPDATE").execute(&mut *other).await.unwrap();
    let store = fixture.store(Purpose::Dispatch).await;
    assert_eq!(store.roll_up(fixture.end(), 5).await.unwrap(), RolledUp::Busy);
    fixture.assert_answers("locked").await;
    other.rollback().await.unwrap();
    assert_eq!(roll_up(&store, fixture.end(), 5).await, 10);
    store.close().await;
}

#[tokio::test]
async fn a_fence_is_passed_once_the_transactions_before_it_are_over() {
    let mut fixture = Fixture::empty().await;
    let store = fixture.store(Purpose::Dispatch).await;
    let late = Made::new("late", fixture.begin + TimeDelta::minutes(1));
    let mut transaction = fixture.db.begin().await.unwrap();
    late.write(&mut transaction).await;
    let fence = store.fence().await.unwrap();
    assert!(fence.at <= Utc::now() + TimeDelta::minutes(1));
    for _ in 0..3 {
        // Later transactions come and go.
        fixture.add(Made::new("early", fixture.begin)).await;
        assert!(!fence.is_passed_by(&store.fence().await.unwrap()), "a call of before may still appear");
    }
    transaction.commit().await.unwrap();
    fixture.calls.push(late);
    // One that begins later holds nothing up.
    let mut later = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT pg_current_xact_id()").execute(&mut *later).await.unwrap();
    // Transactions of other tests on this server hold it up, too.
    until("the fence is passed", async || fence.is_passed_by(&store.fence().await.unwrap()).then_some(())).await;
    assert_eq!(roll_up(&store, fixture.end(), 100).await, 4);
    fixture.assert_answers("with the late one").await;
    later.rollback().await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn old_statistics_are_deleted_and_those_of_workers_earlier() {
    let mut fixture = Fixture::empty().await;
    let store = fixture.store(Purpose::Dispatch).await;
    for days in [0, 36, 399, 401] {
        fixture.add(Made::new(&format!("days_{days}"), fixture.begin - TimeDelta::days(days))).await;
    }
    let now = fixture.begin + TimeDelta::hours(1);
    sqlx::query("UPDATE stats_progress SET rolled_until = $1")
        .bind(now - TimeDelta::days(500))
        .execute(&fixture.db)
        .await
        .unwrap();
    assert_eq!(roll_up(&store, now, 50).await, 3, "what would be deleted at once is not counted");
    let later = now + TimeDelta::days(2);
    while store.delete_old_stats(later, 1).await.unwrap() > 0 {}
    let tools = async |table: &str| -> Vec<String> {
        let query = format!("SELECT tool FROM {table} ORDER BY hour");
        sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_all(&fixture.db).await.unwrap()
    };
    assert_eq!(tools("call_stats").await, ["days_36", "days_0"]);
    assert_eq!(tools("attempt_stats").await, ["days_0"]);
    store.close().await;
}

#[tokio::test]
async fn calls_that_cannot_be_read_in_time_can_be_left_out() {
    let mut fixture = Fixture::empty().await;
    let store = fixture.store(Purpose::Dispatch).await;
    let first = Made::new("first", fixture.begin);
    let at = first.finished_at;
    fixture.add(first).await;
    fixture.add(Made::new("second", fixture.begin + TimeDelta::seconds(1))).await;
    assert_eq!(store.leave_out_of_stats(fixture.begin).await.unwrap(), None, "nothing ended before");
    assert_eq!(store.leave_out_of_stats(fixture.end()).await.unwrap(), Some(at));
    assert_eq!(roll_up(&store, fixture.end(), 50).await, 1);
    let groups = fixture.ask(&fixture.question(By::Tool)).await.groups;
    assert_eq!(groups.len(), 1, "{groups:?}");
    store.close().await;
}

#[tokio::test]
async fn a_clock_that_went_ahead_for_a_while_hides_and_doubles_no_call() {
    let mut fixture = Fixture::filled(7, 100).await;
    let store = fixture.store(Purpose::Dispatch).await;
    assert_eq!(store.set_back_stats().await.unwrap(), None);
    fixture.begin = Utc::now().duration_trunc(TimeDelta::hours(1)).unwrap() - TimeDelta::hours(1);
    fixture.add(Made::new("while_ahead", Utc::now() + TimeDelta::days(2))).await;
    let rolled = async || store.rolled_until().await.unwrap().unwrap_or(fixture.begin);
    while rolled().await < Utc::now() + TimeDelta::days(2) {
        store.roll_up(Utc::now() + TimeDelta::days(3), 50).await.unwrap();
    }
    store.roll_up(Utc::now() + TimeDelta::days(3), 50).await.unwrap();
    let db = fixture.db.clone();
    let days_are_ahead = async || {
        let ahead = sqlx::query_scalar::<_, Option<bool>>("SELECT days_until > now() FROM stats_progress");
        ahead.fetch_one(&db).await.unwrap()
    };
    assert_eq!(days_are_ahead().await, Some(true));
    // The clock is right again.
    fixture.add(Made::new("afterwards", Utc::now())).await;
    assert!(!fixture.ask(&fixture.question(By::Tool)).await.is_complete);
    let from = store.set_back_stats().await.unwrap().unwrap();
    assert!(from <= Utc::now() - TimeDelta::hours(1), "{from}");
    assert_eq!(store.set_back_stats().await.unwrap(), None);
    let days = "SELECT count(*) FROM model_day_stats WHERE day >= date_trunc('day', $1, 'UTC')";
    let days: i64 = sqlx::query_scalar(days).bind(from).fetch_one(&fixture.db).await.unwrap();
    assert_eq!((days, days_are_ahead().await), (0, Some(false)), "days of models are added up again, too");
    let stats = fixture.ask(&fixture.question(By::Tool)).await;
    assert!(stats.is_complete);
    assert_eq!(stats.groups.iter().map(|(_, sums)| sums.calls.calls).sum::<u64>(), 1, "{stats:?}");
    assert_eq!(roll_up(&store, Utc::now(), 50).await, 1);
    let counted = "SELECT sum(calls)::bigint FROM call_stats";
    let counted: i64 = sqlx::query_scalar(counted).fetch_one(&fixture.db).await.unwrap();
    assert_eq!(counted, 101, "the one of the future counts when its time has come");
    store.close().await;
}
