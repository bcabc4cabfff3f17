//! The guarded statements for claims and heartbeats decide as the engine's predicates say, on random rows; and what else a guard decides.

use std::collections::HashSet;

use chrono::TimeDelta;
use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_engine::call::{grants, renews, takes_back};
use redial_proto::{CallId, CallState, ClaimId, GrantRef, JobRef, WorkerId};
use redial_records::{CallRecord, Claim};
use redial_store::{HeldGrant, LostGrant, ReturnedJob};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::fixture::Fixture;

const ROWS: usize = 4_000;
/// Few values, so that they often meet.
const CLAIMS: u128 = 3;
const CONSUMERS: [&str; 2] = ["default", "other"];
const WORKERS: [&str; 3] = ["worker-1", "worker-2", "worker-3"];

fn claim_id(random: &mut StdRng) -> ClaimId {
    ClaimId(Uuid::from_u128(random.random_range(1..=CLAIMS)))
}

fn worker(random: &mut StdRng) -> WorkerId {
    WORKERS[random.random_range(0..WORKERS.len())].parse().unwrap()
}

/// Inserts a row in any state, with and without a worker and a claim, before and after its deadline.
async fn insert(db: &mut PgConnection, random: &mut StdRng) -> CallId {
    let id = CallId::generate();
    let state = CallState::ALL[random.random_range(0..CallState::ALL.len())];
    let claim = random.random_bool(0.8).then(|| claim_id(random).0);
    let worker = random.random_bool(0.8).then(|| worker(random).as_str().to_owned());
    sqlx::query(
        "INSERT INTO calls (id, submitted_at, deadline_at, timeout_ms, notify, tool, pool, effect, tenant, arguments,
                            published_at, attempt, state, worker, claim_id, wake_at, finished_at, lease_until, consumer,
                            backlog_at, started_at)
         SELECT $1, now(), now() + $2 * interval '1 h', 1000, false, 'look', 'default', 'read', 'default', '{}',
                now() + (1 - 2 * $8) * interval '1 h', $3, $4, $5, $6, CASE WHEN $7 THEN NULL ELSE now() END, CASE WHEN $7 THEN now() END,
                CASE WHEN $4 = 'running' THEN now() END, $9, CASE WHEN $10 AND $4 = 'ready' THEN now() END,
                CASE WHEN $11 THEN now() END",
    )
    .bind(id.0)
    .bind(if random.random_bool(0.8) { 1 } else { -1 })
    .bind(random.random_range(0..3))
    .bind(state.as_str())
    .bind(worker)
    .bind(claim)
    .bind(state.is_terminal())
    .bind(random.random_range(0..2))
    .bind(CONSUMERS[random.random_range(0..CONSUMERS.len())])
    .bind(random.random_bool(0.2))
    .bind(random.random_bool(0.5))
    .execute(db)
    .await
    .unwrap();
    id
}

async fn random_rows(random: &mut StdRng) -> (Fixture, Vec<CallRecord>) {
    let fixture = Fixture::open().await;
    let mut ids = Vec::with_capacity(ROWS);
    let mut transaction = fixture.db.begin().await.unwrap();
    for _ in 0..ROWS {
        ids.push(insert(&mut transaction, random).await);
    }
    transaction.commit().await.unwrap();
    let calls = fixture.store.load(&ids).await.unwrap();
    assert_eq!(calls.len(), ROWS);
    (fixture, calls)
}

#[tokio::test]
async fn claims_are_granted_as_the_engine_says() {
    let mut random = StdRng::seed_from_u64(1);
    let (fixture, calls) = random_rows(&mut random).await;
    let claims: Vec<Claim> = calls
        .iter()
        .map(|call| Claim {
            job: JobRef { call: call.id, attempt: random.random_range(0..4) },
            claim: claim_id(&mut random),
            worker: worker(&mut random),
            tool: if random.random_ratio(1, 8) { "another".to_owned() } else { call.tool.clone() },
            not_after: call.read_at + TimeDelta::hours(if random.random_ratio(1, 4) { -1 } else { 1 }),
        })
        .collect();
    let granted: HashSet<CallId> =
        fixture.store.claim(&claims, 60_000).await.unwrap().into_iter().map(|granted| granted.job.call).collect();
    for (call, claim) in calls.iter().zip(&claims) {
        let expected = grants(call, claim, call.read_at);
        assert_eq!(granted.contains(&call.id), expected, "{claim:?} for {call:?}");
    }
    assert!((ROWS / 200..ROWS / 2).contains(&granted.len()), "{} of {ROWS} were granted", granted.len());
    let again = calls.iter().filter(|call| call.state == CallState::Running && granted.contains(&call.id)).count();
    assert!(again > ROWS / 2_000, "only {again} claims were granted again");
}

#[tokio::test]
async fn leases_are_renewed_as_the_engine_says() {
    let mut random = StdRng::seed_from_u64(2);
    let (fixture, calls) = random_rows(&mut random).await;
    let grant = |call: &CallRecord| GrantRef {
        call: call.id,
        attempt: random.random_range(0..3),
        claim: claim_id(&mut random),
    };
    let grants: Vec<GrantRef> = calls.iter().map(grant).collect();
    let mut renewed_in_all = 0;
    for worker in WORKERS {
        let worker: WorkerId = worker.parse().unwrap();
        let held = fixture.store.renew(&worker, &grants, None, 60_000).await.unwrap();
        let renewed: HashSet<GrantRef> = held.iter().filter(|held| held.renewed).map(|held| held.grant).collect();
        for (call, grant) in calls.iter().zip(&grants) {
            let expected = renews(call, &worker, *grant);
            assert_eq!(renewed.contains(grant), expected, "{grant:?} of {worker} for {call:?}");
        }
        renewed_in_all += renewed.len();
    }
    assert!(renewed_in_all > ROWS / 400, "only {renewed_in_all} leases were renewed");
}

#[tokio::test]
async fn lost_grants_are_taken_back_as_the_engine_says() {
    let mut random = StdRng::seed_from_u64(4);
    let (fixture, calls) = random_rows(&mut random).await;
    // Of these the first may serve the tool, the second has not registered it, the third is of another identity, and the fourth is not
    // on record.
    let workers = ["worker-1", "worker-2", "stranger-1", "worker-3"].map(|worker| worker.parse::<WorkerId>().unwrap());
    sqlx::raw_sql(
        "INSERT INTO tool_identities (tool, identity) VALUES ('look', 'worker');
         INSERT INTO workers (id, version, tools, started_at, slots)
         VALUES ('worker-1', '', '{look}', now(), 1), ('worker-2', '', '{other}', now(), 1),
                ('stranger-1', '', '{look}', now(), 1)",
    )
    .execute(&fixture.db)
    .await
    .unwrap();
    let mut held_by = |call: &CallRecord| {
        let grant = GrantRef { call: call.id, attempt: random.random_range(0..4), claim: claim_id(&mut random) };
        let hours = [None, Some(-1), Some(1), Some(1)][random.random_range(0..4)];
        let held_at = hours.map(|hours| call.read_at + TimeDelta::hours(hours));
        HeldGrant { worker: &workers[random.random_range(0..4)], grant, held_at }
    };
    let held: Vec<HeldGrant<'_>> = calls.iter().map(&mut held_by).collect();
    let lost = fixture.store.take_back(&held, 60_000).await.unwrap();
    let expected = |(call, held): (&CallRecord, &HeldGrant<'_>)| {
        let is_refused = [&workers[1], &workers[2]].contains(&held.worker);
        let lost = LostGrant { grant: held.grant, is_refused, is_taken: held.worker == &workers[0] };
        takes_back(call, held.grant, held.held_at).then_some(lost)
    };
    let expected: Vec<LostGrant> = calls.iter().zip(&held).filter_map(expected).collect();
    let by_grant = |mut lost: Vec<LostGrant>| {
        lost.sort_unstable_by_key(|lost| lost.grant);
        lost
    };
    assert_eq!(by_grant(lost), by_grant(expected.clone()));
    let taken: Vec<GrantRef> = expected.iter().filter(|lost| lost.is_taken).map(|lost| lost.grant).collect();
    assert!(taken.len() > ROWS / 400 && taken.len() * 2 < expected.len(), "{} of {}", taken.len(), expected.len());
    let again = fixture.store.renew(&workers[0], &taken, None, 60_000).await.unwrap();
    assert!(again.len() == taken.len() && again.iter().all(|held| held.renewed), "they run again");
}

#[tokio::test]
async fn only_ready_jobs_of_the_consumer_are_published_again() {
    let mut random = StdRng::seed_from_u64(3);
    let (fixture, calls) = random_rows(&mut random).await;
    let returned: Vec<ReturnedJob<'_>> = calls
        .iter()
        .map(|call| ReturnedJob {
            job: JobRef { call: call.id, attempt: random.random_range(0..4) },
            tool: if random.random_ratio(1, 8) { "another" } else { &call.tool },
            consumer: CONSUMERS[random.random_range(0..CONSUMERS.len())],
            at_once: random.random(),
        })
        .collect();
    let ready = fixture.store.returned_jobs(&returned).await.unwrap();
    for (call, back) in calls.iter().zip(&returned) {
        // The others are of the next hour.
        let is_old = call.published_at.is_some_and(|at| call.read_at - at > TimeDelta::minutes(30));
        let expected = call.state == CallState::Ready
            && call.attempt + 1 == back.job.attempt
            && (call.tool.as_str(), call.consumer.as_deref()) == (back.tool, Some(back.consumer))
            && call.backlog.is_none()
            && (back.at_once || is_old);
        assert_eq!(ready.contains(&back.job), expected, "{back:?} for {call:?}");
    }
    assert!(ready.len() > ROWS / 400, "{} of {ROWS} are ready", ready.len());
}

#[tokio::test]
async fn one_dispatcher_deals_with_each_loss_of_the_job_stream() {
    let fixture = Fixture::open().await;
    let (one, two) = (fixture.another_store().await, fixture.another_store().await);
    let adopt = async |created, lost_after| {
        let both = tokio::join!(one.adopt_job_stream(created, lost_after), two.adopt_job_stream(created, lost_after));
        (both.0.unwrap(), both.1.unwrap())
    };
    let by_one = |adopted| match adopted {
        (Some(since), None) | (None, Some(since)) => since,
        both => panic!("{both:?}"),
    };
    let later = async || {
        let change = "UPDATE job_stream SET requeued_at = requeued_at - interval '16 s'";
        sqlx::query(change).execute(&fixture.db).await.unwrap();
    };
    let created = fixture.store.now().await.unwrap();
    by_one(adopt(created, None).await);
    let created = created + TimeDelta::seconds(1);
    by_one(adopt(created, None).await);
    assert_eq!(adopt(created, None).await, (None, None), "it is dealt with");
    by_one(adopt(created, Some(fixture.store.now().await.unwrap())).await);
    later().await;
    let since = by_one(adopt(created, None).await);
    fixture.store.job_stream_adopted(since).await.unwrap();
    later().await;
    assert_eq!(adopt(created, None).await, (None, None), "whoever began has finished");
}
