//! Partitions are made ahead, and dropped without losing what is still needed.

use std::time::Duration;

use redial_proto::CallId;
use redial_records::{NewCall, Redrive, TaskCall};
use redial_store::{Dropped, Partition, StoreError, Submitted};
use uuid::Uuid;

use crate::fixture::{Fixture, bare_call};

const HOUR: Duration = Duration::from_hours(1);
/// Partition 1 is that of the day before yesterday. What was kept is older, and partition 2 is that of now.
const OLD: &str = "
    DROP TABLE calls_1, attempts_1;
    ALTER TABLE calls DETACH PARTITION calls_kept_0;
    ALTER TABLE attempts DETACH PARTITION attempts_kept_0;
    UPDATE call_partitions SET to_at = date_trunc('day', now()) - interval '2 days' WHERE number = 0;
    UPDATE call_partitions SET from_at = date_trunc('day', now()) - interval '2 days',
                               to_at = date_trunc('day', now()) - interval '1 day' WHERE number = 1;
    DO $$
    DECLARE
        lower uuid := first_id(date_trunc('day', now()) - interval '2 days');
        upper uuid := first_id(date_trunc('day', now()) - interval '1 day');
    BEGIN
        EXECUTE format('ALTER TABLE calls ATTACH PARTITION calls_kept_0 FOR VALUES FROM (MINVALUE) TO (%L)', lower);
        EXECUTE format('ALTER TABLE attempts ATTACH PARTITION attempts_kept_0 FOR VALUES FROM (MINVALUE) TO (%L)', lower);
        EXECUTE format('CREATE TABLE calls_1 PARTITION OF calls FOR VALUES FROM (%L) TO (%L)', lower, upper);
        EXECUTE format('CREATE TABLE attempts_1 PARTITION OF attempts FOR VALUES FROM (%L) TO (%L)', lower, upper);
    END
    $$;";

async fn open() -> (Fixture, Partition) {
    let fixture = Fixture::open().await;
    sqlx::raw_sql(OLD).execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.store.add_partitions(HOUR, HOUR).await.unwrap(), 1);
    let partitions = fixture.store.partitions().await.unwrap();
    assert_eq!(partitions.iter().map(|partition| partition.number).collect::<Vec<_>>(), [0, 1, 2]);
    let old = partitions[1];
    (fixture, old)
}

/// Makes an id in the middle of a partition.
fn id_within(partition: Partition) -> CallId {
    let middle = partition.until - chrono::TimeDelta::hours(12);
    let ms = u128::from(middle.timestamp_millis().unsigned_abs());
    CallId(Uuid::from_u128(ms << 80 | Uuid::new_v4().as_u128() >> 48))
}

fn old_call(partition: Partition) -> NewCall {
    NewCall { id: id_within(partition), ..bare_call() }
}

fn keyed(key: &str, call: NewCall) -> NewCall {
    NewCall { key: Some(key.to_owned()), content: Some(Uuid::from_u128(1)), ..call }
}

async fn submit(fixture: &Fixture, call: &NewCall) -> Submitted {
    fixture.store.submit(std::slice::from_ref(call), 10_000).await.unwrap().remove(0)
}

async fn tables_of(fixture: &Fixture) -> Vec<(String, Uuid)> {
    sqlx::query_as("SELECT tableoid::regclass::text, id FROM calls ORDER BY id").fetch_all(&fixture.db).await.unwrap()
}

#[tokio::test]
async fn what_is_still_needed_of_a_partition_survives_it() {
    let (fixture, old) = open().await;
    let task = fixture.submit("living").await;
    let of_task = NewCall { task: Some(TaskCall { task, turn: 1, call_index: 0 }), ..old_call(old) };
    fixture.start_with(task, std::slice::from_ref(&of_task)).await;
    let (gone, open, late) = (keyed("gone", old_call(old)), keyed("open", old_call(old)), keyed("late", old_call(old)));
    for call in [&gone, &open, &late] {
        assert!(matches!(submit(&fixture, call).await, Submitted::Written));
    }
    fixture.cancel(of_task.id).await;
    let again =
        |call: &NewCall| NewCall { redrive_of: Some(Redrive { call: call.id, origin: call.id }), ..old_call(old) };
    let (redrive, of_living) = (again(&gone), again(&of_task));
    for call in [&redrive, &of_living] {
        assert!(matches!(submit(&fixture, call).await, Submitted::Written));
    }
    for call in [&gone, &redrive, &of_living] {
        fixture.cancel(call.id).await;
    }
    let cutoff = fixture.store.now().await.unwrap();
    fixture.cancel(late.id).await;
    assert!(tables_of(&fixture).await.iter().all(|(table, _)| table == "calls_1"));

    fixture.store.free_keys(old, cutoff).await.unwrap();
    assert_eq!(fixture.store.drop_partition(old, cutoff, 100).await.unwrap(), Dropped::Done { moved: 4 });
    let left = tables_of(&fixture).await;
    let mut needed = [open.id.0, late.id.0, of_task.id.0, of_living.id.0];
    needed.sort_unstable();
    assert_eq!(left, needed.map(|id| ("calls_kept_1".to_owned(), id)));
    let partitions = fixture.store.partitions().await.unwrap();
    assert_eq!((partitions.len(), partitions[0].until), (2, old.until));
    assert_eq!(fixture.count("SELECT count(*) FROM redriven_calls").await, 1, "that of the task's call");
    assert!(matches!(submit(&fixture, &again(&of_task)).await, Submitted::Existing { id, .. } if id == of_living.id));
    assert_eq!(fixture.store.drop_partition(old, cutoff, 100).await.unwrap(), Dropped::Done { moved: 0 }, "repeated");

    // The promises on keys, and the calls of the task.
    for (key, call) in [("open", &open), ("late", &late)] {
        let again = submit(&fixture, &keyed(key, bare_call())).await;
        assert!(matches!(again, Submitted::Existing { id, .. } if id == call.id), "{key}: {again:?}");
    }
    assert!(matches!(submit(&fixture, &keyed("gone", bare_call())).await, Submitted::Written));
    let turn = fixture.own().newest_turn(task).await.unwrap();
    assert_eq!(turn, Some((1, false)));
    // What is open goes on, and what has ended stays as it is.
    fixture.claim(open.id).await;
    let change = sqlx::query("UPDATE calls SET class = NULL WHERE id = $1").bind(late.id.0).execute(&fixture.db).await;
    assert!(change.unwrap_err().to_string().contains("ended calls never change"));
}

#[tokio::test]
async fn a_partition_of_which_too_much_is_needed_stays_as_it_is() {
    let (fixture, old) = open().await;
    for _ in 0..7 {
        submit(&fixture, &old_call(old)).await;
    }
    // Vacuum would lock what is dropped.
    let large = "ALTER TABLE calls_1 SET (toast.autovacuum_enabled = off);
                 ALTER TABLE calls_1 ALTER arguments SET STORAGE EXTERNAL;
                 UPDATE calls SET arguments = to_json(repeat('x', 16 * 1024 * 1024))";
    sqlx::raw_sql(large).execute(&fixture.db).await.unwrap();
    let cutoff = fixture.store.now().await.unwrap();
    for most in [6, 100] {
        assert_eq!(fixture.store.drop_partition(old, cutoff, most).await.unwrap(), Dropped::TooManyNeeded);
        assert!(tables_of(&fixture).await.iter().all(|(table, _)| table == "calls_1"));
    }
    // The other six have 96 MiB.
    let less = "UPDATE calls SET arguments = '{}' WHERE id = (SELECT id FROM calls LIMIT 1)";
    sqlx::query(less).execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.store.drop_partition(old, cutoff, 6).await.unwrap(), Dropped::TooManyNeeded);
    assert_eq!(fixture.store.drop_partition(old, cutoff, 7).await.unwrap(), Dropped::Done { moved: 7 });
}

#[tokio::test]
async fn a_drop_that_takes_too_long_is_undone_and_is_no_use_by_others() {
    let (fixture, old) = open().await;
    submit(&fixture, &old_call(old)).await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE EXCEPTION 'too slow' USING ERRCODE = 'query_canceled'; END $$;
                CREATE TRIGGER slow BEFORE DELETE ON call_partitions FOR EACH ROW EXECUTE FUNCTION slow()";
    sqlx::raw_sql(slow).execute(&fixture.db).await.unwrap();
    let cutoff = fixture.store.now().await.unwrap();
    assert_eq!(fixture.store.drop_partition(old, cutoff, 100).await.unwrap(), Dropped::TooSlow);
    assert!(tables_of(&fixture).await.iter().all(|(table, _)| table == "calls_1"));
}

/// What is kept of a partition has its bounds, so Postgres reads nothing of it, however much it is. Small ones become one.
#[tokio::test]
async fn what_is_kept_is_never_read_for_its_bounds_and_is_in_few_partitions() {
    let (fixture, mut old) = open().await;
    let behind = "DROP TABLE calls_2, attempts_2; DELETE FROM call_partitions WHERE number = 2";
    sqlx::raw_sql(behind).execute(&fixture.db).await.unwrap();
    let kept = async || {
        let kept = "SELECT tableoid::regclass::text, count(*) FROM calls GROUP BY tableoid ORDER BY min(id::text)";
        sqlx::query_as::<_, (String, i64)>(kept).fetch_all(&fixture.db).await.unwrap()
    };
    let cutoff = fixture.store.now().await.unwrap();
    // Partition 1 is made again, for the hour behind the one that was dropped.
    let mut seen = Vec::new();
    for needed in [2_500_i32, 10, 1_100, 3] {
        let many = "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                                       wake_at, state)
                    SELECT (left(first_id($1)::text, 13) || substr(gen_random_uuid()::text, 14))::uuid, now(), now(), 1, false, 't',
                           'default', 'read', 'default', '{}', now(), 'ready'
                    FROM generate_series(1, $2)";
        let middle = old.until - chrono::TimeDelta::minutes(30);
        sqlx::query(many).bind(middle).bind(needed).execute(&fixture.db).await.unwrap();
        let dropped = fixture.store.drop_partition(old, cutoff, 3_000).await.unwrap();
        assert_eq!(dropped, Dropped::Done { moved: needed.unsigned_abs().into() });
        seen.push(kept().await);
        let next = "INSERT INTO call_partitions VALUES (1, $1, $1 + interval '1 h')";
        sqlx::query(next).bind(old.until).execute(&fixture.db).await.unwrap();
        let made = "SELECT make_call_partition(parent, parent || '_1', $1, $1 + interval '1 h')
                    FROM UNNEST(ARRAY['calls', 'attempts']) AS parent";
        sqlx::query(made).bind(old.until).execute(&fixture.db).await.unwrap();
        old = Partition { number: 1, from: Some(old.until), until: old.until + HOUR };
    }
    let wanted: [&[(&str, i64)]; 4] = [
        &[("calls_kept_1", 2_500)],
        &[("calls_kept_1", 2_500), ("calls_kept_2", 10)],
        &[("calls_kept_1", 2_500), ("calls_kept_3", 1_110)],
        &[("calls_kept_1", 2_500), ("calls_kept_3", 1_110), ("calls_kept_4", 3)],
    ];
    let wanted = wanted.map(|kept| kept.iter().map(|(table, calls)| ((*table).to_owned(), *calls)).collect::<Vec<_>>());
    assert_eq!(seen, wanted);
}

/// As a `pg_dump` does for an hour: dispatchers must go on meanwhile.
#[tokio::test]
async fn a_partition_that_others_read_is_dropped_later() {
    let (fixture, old) = open().await;
    let cutoff = fixture.store.now().await.unwrap();
    let mut reader = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM calls").execute(&mut *reader).await.unwrap();
    assert_eq!(fixture.store.drop_partition(old, cutoff, 100).await.unwrap(), Dropped::InUse);
    assert!(matches!(submit(&fixture, &bare_call()).await, Submitted::Written), "others are not kept waiting");
    assert_eq!(fixture.store.add_partitions(HOUR * 48, HOUR * 24).await.unwrap(), 2, "nor is what is made ahead");
    reader.rollback().await.unwrap();
    assert_eq!(fixture.store.drop_partition(old, cutoff, 100).await.unwrap(), Dropped::Done { moved: 0 });
}

#[tokio::test]
async fn what_is_not_old_enough_is_not_dropped() {
    let (fixture, old) = open().await;
    let early = old.until + chrono::TimeDelta::minutes(9);
    let refused = fixture.store.drop_partition(old, early, 100).await.unwrap_err().to_string();
    assert!(refused.contains("did not end before"), "{refused}");
    let partitions = fixture.store.partitions().await.unwrap();
    let refused = fixture.store.drop_partition(partitions[2], partitions[2].until + HOUR, 100).await.unwrap_err();
    assert!(refused.to_string().contains("is not the oldest one"), "{refused}");
    assert_eq!(fixture.store.partitions().await.unwrap(), partitions);
}

#[tokio::test]
async fn partitions_follow_one_another_whoever_makes_them() {
    let (fixture, _) = open().await;
    let another = fixture.another_store().await;
    let (ahead, width) = (HOUR * 24 * 10, HOUR * 24);
    let (first, second) =
        tokio::join!(fixture.store.add_partitions(ahead, width), another.add_partitions(ahead, width));
    let made = first.unwrap() + second.unwrap();
    let partitions = fixture.store.partitions().await.unwrap();
    assert_eq!(partitions.len(), 3 + made as usize);
    for pair in partitions.windows(2) {
        assert_eq!(pair[1].from, Some(pair[0].until));
    }
    let last = partitions[partitions.len() - 1];
    assert!(last.until > fixture.store.now().await.unwrap() + ahead);
    // A clock that is further ahead than that.
    let call = NewCall { id: id_within(Partition { until: last.until + width, ..last }), ..bare_call() };
    let error = fixture.store.submit(&[call], 10_000).await.unwrap_err();
    assert!(matches!(&error, StoreError::NoPartition(_)) && error.is_transient(), "{error}");
}
