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
        let found = async |until| fixture.store.count_calls(&scope, until, None, 100).await.unwrap().counts.calls;
        assert_eq!(found(until).await, go);
        assert_eq!(found(until + TimeDelta::hours(2)).await, go + stay);
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

/// The last call that was looked at may be of another tenant, and its id must not be told.
#[tokio::test]
async fn a_dry_run_stops_between_two_ms() {
    let fixture = Fixture::open().await;
    // 10 ms, each with 5 calls of one tenant and 5 of another.
    sqlx::query(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments, published_at,
                            finished_at, state)
         SELECT (lpad(to_hex(1760000000000 + n / 10), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid,
                now(), now(), 1, false, 'read', 'default', 'read', CASE WHEN n % 2 = 0 THEN 'default' ELSE 'other' END, '{}',
                now(), now(), 'failed'
         FROM generate_series(0, 99) n",
    )
    .execute(&fixture.db)
    .await
    .unwrap();
    let scope = Scope { tenant: "default".to_owned(), conversation: None };
    for limit in [1, 3, 15, 25, 1_000] {
        let (mut counted, mut after, mut pages) = (0, None, 0);
        loop {
            let page = fixture.store.count_calls(&scope, Utc::now(), after, limit).await.unwrap();
            (counted, pages) = (counted + page.counts.calls, pages + 1);
            let Some(before) = page.before else { break };
            assert_eq!(before.0.as_u128() << 48, 0, "nothing but a time");
            assert!(after < Some(before));
            after = Some(before);
        }
        assert_eq!(counted, 50, "with {limit} at once");
        assert!(pages > 1 || limit == 1_000);
    }
}

#[tokio::test]
async fn a_dry_run_counts_dead_letters_in_blocks() {
    let fixture = Fixture::open().await;
    let letters = "INSERT INTO dead_letters (source, tenant, code, message, payload)
                   SELECT 'intake', CASE WHEN n % 3 = 0 THEN 'default' ELSE 'other' END, 'x', '', '{}' FROM generate_series(1, 900) n";
    sqlx::raw_sql(letters).execute(&fixture.db).await.unwrap();
    sqlx::raw_sql("DELETE FROM dead_letters WHERE id BETWEEN 300 AND 700").execute(&fixture.db).await.unwrap();
    let left = fixture.count("SELECT count(*) FROM dead_letters WHERE tenant = 'default'").await;
    let scope = Scope { tenant: "default".to_owned(), conversation: None };
    let (mut counted, mut after, mut positions) = (0, 0, Vec::new());
    loop {
        let block = fixture.store.count_letters(&scope, after).await.unwrap();
        counted += block.dead_letters;
        let Some(next) = block.up_to else { break };
        positions.push(next);
        after = next;
    }
    assert_eq!((counted, positions), (u64::try_from(left).unwrap(), vec![256, 512, 768]));
    for odd in [i64::MIN, i64::MAX] {
        fixture.store.count_letters(&scope, odd).await.unwrap();
    }
}
