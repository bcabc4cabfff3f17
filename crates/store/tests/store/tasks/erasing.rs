//! What belongs to an erasure, and what its dry run tells.

use chrono::{TimeDelta, Utc};
use redial_proto::CallId;
use redial_records::{NewCall, Redrive, Time};
use redial_store::{Phase, Scope, Submitted};
use uuid::Uuid;

use crate::fixture::{Fixture, bare_call};

/// What distinguishes a call for an erasure.
#[derive(Clone, Copy, Default)]
struct Of {
    is_new: bool,
    task: Option<Uuid>,
    redriven: Option<CallId>,
}

async fn write(fixture: &Fixture, until: Time, of: Of) -> CallId {
    let id = CallId::generate();
    let submitted_at = until + TimeDelta::hours(if of.is_new { 1 } else { -1 });
    sqlx::query(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, conversation, arguments,
                            published_at, finished_at, state, attempt, task_id, turn, call_index, redrive_of, origin_id)
         VALUES ($1, $2, $2, 1, false, 'read', 'default', 'read', 'default', 'c', '{}', $2, $2, 'failed', 1,
                 $3, CASE WHEN $3 IS NOT NULL THEN 1 END, CASE WHEN $3 IS NOT NULL THEN 1 END, $4, $4)",
    )
    .bind(id.0)
    .bind(submitted_at)
    .bind(of.task)
    .bind(of.redriven.map(|call| call.0))
    .execute(&fixture.db)
    .await
    .unwrap();
    id
}

/// A task that runs when its conversation is to be erased makes calls until it is cancelled.
#[tokio::test]
async fn an_erasure_takes_what_comes_of_work_from_before_its_time() {
    let fixture = Fixture::open().await;
    let until = Utc::now();
    let (old, new) = (fixture.submit("c").await.0, fixture.submit("c").await.0);
    for (task, hours) in [(old, -1), (new, 1)] {
        let change = sqlx::query("UPDATE tasks SET submitted_at = $2 WHERE id = $1").bind(task);
        change.bind(until + TimeDelta::hours(hours)).execute(&fixture.db).await.unwrap();
    }
    let new_one = Of { is_new: true, ..Of::default() };
    let bare = write(&fixture, until, new_one).await;
    write(&fixture, until, Of { task: Some(new), ..new_one }).await;
    write(&fixture, until, Of { redriven: Some(bare), ..new_one }).await;
    let stay = 3;
    let early = write(&fixture, until, Of::default()).await;
    let late = write(&fixture, until, Of { task: Some(old), ..new_one }).await;
    // Its task is deleted before its calls are.
    write(&fixture, until, Of { task: Some(Uuid::now_v7()), ..new_one }).await;
    for of in [early, late, CallId::generate()] {
        write(&fixture, until, Of { redriven: Some(of), ..new_one }).await;
    }
    let go = 6;
    for conversation in [Some("c".to_owned()), None] {
        let scope = Scope { tenant: "default".to_owned(), conversation };
        let counted = fixture.store.count_erasure(&scope).await.unwrap();
        assert_eq!((counted.counts.calls, counted.counts.tasks, counted.more), (go + stay, 2, false));
    }

    // It is erased in steps of two dispatchers, each of which counts once.
    let (id, another) = (Uuid::now_v7(), fixture.another_store().await);
    let begun = "INSERT INTO tombstones (id, tenant, conversation, actor, cancels, until_at, phase)
                 VALUES ($1, 'default', 'c', 'ann', false, $2, 'calls')";
    sqlx::query(begun).bind(id).bind(until).execute(&fixture.db).await.unwrap();
    let erased = loop {
        let (one, two) = tokio::join!(fixture.store.erase_step(id, 2), another.erase_step(id, 2));
        if let Some(done) = [one, two].into_iter().filter_map(Result::unwrap).find(|one| one.phase == Phase::Done) {
            break done.counts.calls;
        }
    };
    assert_eq!((erased, fixture.count("SELECT count(*) FROM calls").await), (go, 3));
}

/// One entry of a batch must not speak for the others: they are written.
#[tokio::test]
async fn a_redrive_of_what_is_gone_is_told_apart_from_its_neighbours() {
    let fixture = Fixture::open().await;
    let gone = CallId::generate();
    let redrive = NewCall { redrive_of: Some(Redrive { call: gone, origin: gone }), ..bare_call() };
    let results = fixture.store.submit(&[bare_call(), redrive, bare_call()], 1_000).await.unwrap();
    assert!(matches!(results[..], [Submitted::Written, Submitted::Gone, Submitted::Written]), "{results:?}");
    assert_eq!(fixture.count("SELECT count(*) FROM calls").await, 2);
}

/// While an erasure is under way, only what surely stays may be repeated.
#[tokio::test]
async fn newer_calls_are_redriven_during_an_erasure() {
    let fixture = Fixture::open().await;
    let until = Utc::now();
    let new_one = Of { is_new: true, ..Of::default() };
    let (old, new) = (write(&fixture, until, Of::default()).await, write(&fixture, until, new_one).await);
    let begun = "INSERT INTO tombstones (id, tenant, conversation, actor, cancels, until_at)
                 VALUES (gen_random_uuid(), 'default', 'c', 'ann', false, $1)";
    sqlx::query(begun).bind(until).execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.own().being_erased(&[old, new]).await.unwrap(), [old]);
    let redrive = |call| NewCall { redrive_of: Some(Redrive { call, origin: call }), ..bare_call() };
    let results = fixture.store.submit(&[redrive(old), redrive(new)], 1_000).await.unwrap();
    assert!(matches!(results[..], [Submitted::Gone, Submitted::Written]), "{results:?}");
    sqlx::query("UPDATE tombstones SET until_at = NULL").execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.own().being_erased(&[new]).await.unwrap(), [new]);
}

#[tokio::test]
async fn a_dry_run_counts_up_to_a_limit_and_nothing_of_others() {
    let fixture = Fixture::open().await;
    sqlx::query(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments, published_at,
                            finished_at, state)
         SELECT (lpad(to_hex(1760000000000 + n), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid,
                now(), now(), 1, false, 'read', 'default', 'read', CASE WHEN n > 3 THEN 'acme' ELSE 'other' END, '{}',
                now(), now(), 'failed'
         FROM generate_series(1, 100005) n",
    )
    .execute(&fixture.db)
    .await
    .unwrap();
    for (tenant, calls, more) in [("acme", 100_000, true), ("other", 3, false), ("default", 0, false)] {
        let scope = Scope { tenant: tenant.to_owned(), conversation: None };
        let counted = fixture.store.count_erasure(&scope).await.unwrap();
        assert_eq!((counted.counts.calls, counted.more), (calls, more), "{tenant}");
    }
}

/// Each of its erasures waits for a step, and so does the one of another tenant.
#[tokio::test]
async fn a_tenant_with_many_erasures_has_no_more_turns_than_one_with_one() {
    let fixture = Fixture::open().await;
    let begun = "INSERT INTO tombstones (id, tenant, conversation, actor, cancels)
                 SELECT gen_random_uuid(), CASE WHEN n > 0 THEN 'many' ELSE 'one' END, 'c' || n, 'ann', false
                 FROM generate_series(0, 100) n";
    sqlx::raw_sql(begun).execute(&fixture.db).await.unwrap();
    let mut turns = 0;
    for _ in 0..40 {
        let (_, tombstone) = fixture.store.take_erasure(0).await.unwrap().unwrap();
        turns += u32::from(tombstone.unwrap().scope.tenant == "one");
    }
    assert!((5..=35).contains(&turns), "{turns} of 40");
    // Whoever takes one has it for this time.
    while fixture.store.take_erasure(60_000).await.unwrap().is_some() {}
    assert_eq!(fixture.count("SELECT count(*) FROM tombstones WHERE next_at > now() + interval '30 s'").await, 101);
}
