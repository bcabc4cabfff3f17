//! Servers go away and come back, or come back empty: what was accepted is finished, and no attempt pays for it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{collections::HashSet, path::PathBuf, time::Duration};

use futures_util::future::join_all;
use redial_proto::{CallId, CallState, Effect, RetryOverride, Submission};
use redial_store::{Purpose, Store, StoreConfig};
use redial_testkit::{Deed, FaultProxy, Paused, Servers, Side, Stack, arguments, obedient, unique_path};
use serde_json::json;

const LONG: Duration = Duration::from_secs(60);
/// Longer than an outage takes here: workers renew in time.
const LEASE: Duration = Duration::from_secs(12);

/// A stack whose two servers can be killed, with two dispatchers and two workers.
async fn stack(lease: Duration) -> Stack {
    let mut stack = Stack::on(Servers::start_own().await).await;
    stack.lease = lease;
    stack.redeliver_after(Duration::from_secs(2)).await;
    for _ in 0..2 {
        stack.dispatch().await;
        let tools = Effect::ALL.map(|effect| obedient(effect.as_str(), effect, &stack.ledger));
        stack.work(tools.into()).await;
    }
    stack
}

/// Calls of all four effects that take some time.
fn calls(first: u64, count: u64) -> Vec<Submission> {
    let call = |n: u64| {
        let effect = Effect::ALL[usize::try_from(n % 4).unwrap()];
        let orders = json!({"n": n, "before_ms": n % 7 * 10, "after_ms": n % 5 * 10});
        Submission { key: Some(format!("outage-{n}")), ..Submission::new(effect.as_str(), arguments(orders)) }
    };
    (first..first + count).map(call).collect()
}

/// Submits until there is an answer for every call; the keys make that safe.
async fn insist(stack: &Stack, calls: &[Submission]) -> Vec<CallId> {
    redial_testkit::until_within(LONG, "every call is accepted", async || {
        let results = stack.try_submit_all(calls).await.ok()?;
        results.iter().map(|result| result.call).collect()
    })
    .await
}

/// Every call succeeded in its first attempt, and had its effect once.
async fn all_done_at_once(stack: Stack, calls: usize) {
    stack.drained(LONG).await;
    let ledger = stack.ledger.clone();
    let evidence = stack.finish().await;
    let retried: Vec<_> = evidence.calls.values().filter(|call| call.attempt != 1).collect();
    assert!(retried.is_empty(), "an attempt was burnt: {retried:?}");
    assert_eq!(evidence.count(CallState::Succeeded), calls);
    let effects = ledger.entries().into_iter().filter(|entry| entry.deed == Deed::Effect);
    let effects: Vec<CallId> = effects.map(|entry| entry.call).collect();
    assert_eq!((effects.len(), effects.iter().collect::<HashSet<_>>().len()), (calls, calls));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_killed_under_load_loses_nothing_and_burns_no_attempt() {
    let mut stack = stack(LEASE).await;
    insist(&stack, &calls(0, 300)).await;
    stack.ledger.reaches(Deed::Effect, 60).await;
    stack.servers.kill_postgres().await;
    // Tools go on meanwhile, and their results wait.
    stack.servers.start_postgres().await;
    insist(&stack, &calls(200, 200)).await;
    stack.ledger.reaches(Deed::Effect, 320).await;
    stack.servers.kill_postgres().await;
    stack.servers.start_postgres().await;
    all_done_at_once(stack, 400).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_killed_under_load_loses_nothing_and_burns_no_attempt() {
    let mut stack = stack(LEASE).await;
    insist(&stack, &calls(0, 300)).await;
    stack.ledger.reaches(Deed::Effect, 60).await;
    stack.servers.kill_nats().await;
    stack.servers.start_nats().await;
    insist(&stack, &calls(200, 200)).await;
    stack.ledger.reaches(Deed::Effect, 320).await;
    stack.servers.stop_nats().await;
    stack.servers.start_nats().await;
    all_done_at_once(stack, 400).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nats_store_wiped_under_way_loses_nothing() {
    let mut stack = stack(LEASE).await;
    insist(&stack, &calls(0, 300)).await;
    stack.ledger.reaches(Deed::Effect, 60).await;
    stack.servers.kill_nats().await;
    stack.servers.wipe_nats();
    stack.servers.start_nats().await;
    insist(&stack, &calls(300, 100)).await;
    all_done_at_once(stack, 400).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nats_store_wiped_while_nobody_ran_loses_nothing() {
    let mut stack = Stack::start().await;
    stack.work(vec![obedient("read", Effect::Read, &stack.ledger)]).await;
    stack.stop_workers().await;
    let waiting: Vec<Submission> = (0..50).map(|n| Submission::new("read", arguments(json!({"n": n})))).collect();
    stack.call_all(&waiting).await;
    stack.stop_dispatchers().await;
    stack.servers.kill_nats().await;
    stack.servers.wipe_nats();
    stack.servers.start_nats().await;
    stack.dispatch().await;
    stack.work(vec![obedient("read", Effect::Read, &stack.ledger)]).await;
    all_done_at_once(stack, 50).await;
}

/// A retry waits in a column; whoever runs when its time has come starts it, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_keeps_its_time_over_a_restart_of_everything() {
    const PAUSE_MS: i64 = 3_000;
    let mut stack = Stack::start_own().await;
    stack.work(vec![obedient("read", Effect::Read, &stack.ledger)]).await;
    let orders = json!({"fail": "rate_limited", "times": 1, "retry_after_ms": PAUSE_MS});
    let call = stack.call("read", orders).await;
    stack.is(call, CallState::RetryWait).await;
    let due = stack.get(call).await.next_attempt_at.unwrap();
    stack.stop_workers().await;
    stack.stop_dispatchers().await;
    stack.servers.kill_nats().await;
    stack.servers.kill_postgres().await;
    stack.servers.start_postgres().await;
    stack.servers.start_nats().await;
    stack.dispatch().await;
    stack.work(vec![obedient("read", Effect::Read, &stack.ledger)]).await;
    assert_eq!(stack.output(call).await, r#"{"attempt":2}"#);
    let evidence = stack.finish().await;
    let attempts = &evidence.calls[&call].attempts;
    let pause = (due - attempts[0].started_at).num_milliseconds();
    assert!(attempts[1].started_at >= due && pause >= PAUSE_MS, "due after {pause} ms");
    let late = (attempts[1].started_at - due).num_milliseconds();
    assert!(late < 10_000, "started {late} ms after its time");
}

/// Both servers at once, while tools run and a client keeps asking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_during_an_outage_of_both_servers_finishes() {
    let mut stack = stack(LEASE).await;
    let gate = unique_path("gate");
    let retry = RetryOverride { max_attempts: Some(1), ..RetryOverride::default() };
    let held: Vec<Submission> = (0..20)
        .map(|n| {
            let effect = Effect::ALL[n % 4].as_str();
            let orders = arguments(json!({"n": n, "hold": gate}));
            Submission { retry: Some(retry), ..Submission::new(effect, orders) }
        })
        .collect();
    stack.call_all(&held).await;
    stack.ledger.reaches(Deed::Started, 20).await;
    stack.servers.kill_nats().await;
    stack.servers.kill_postgres().await;
    // The tools end while nobody can be told.
    std::fs::write(&gate, "").unwrap();
    stack.ledger.reaches(Deed::Effect, 20).await;
    stack.servers.start_postgres().await;
    stack.servers.start_nats().await;
    all_done_at_once(stack, 20).await;
}

/// Calls that [`hold`] starts.
const HELD: usize = 12;

/// Starts calls whose tools may run twice, and which go on until this file is written.
async fn hold(stack: &Stack) -> PathBuf {
    let gate = unique_path("gate");
    let held: Vec<Submission> = (0..HELD)
        .map(|n| {
            let effect = [Effect::Read, Effect::Idempotent, Effect::Keyed][n % 3].as_str();
            Submission::new(effect, arguments(json!({"n": n, "hold": gate})))
        })
        .collect();
    stack.call_all(&held).await;
    stack.ledger.reaches(Deed::Started, HELD).await;
    gate
}

/// Workers must stop their tools when the lease ends, because nobody tells them that no other worker can be granted
/// their calls. They hand the calls back once somebody is there again, and the attempts do not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_that_outlasts_the_leases_burns_no_attempt() {
    let mut stack = stack(Duration::from_secs(2)).await;
    let gate = hold(&stack).await;
    stack.servers.kill_nats().await;
    stack.ledger.reaches(Deed::Stopped, HELD).await;
    stack.servers.start_nats().await;
    stack.ledger.reaches(Deed::Started, 2 * HELD).await;
    stack.servers.kill_postgres().await;
    stack.ledger.reaches(Deed::Stopped, 2 * HELD).await;
    stack.servers.start_postgres().await;
    std::fs::write(&gate, "").unwrap();
    all_done_at_once(stack, HELD).await;
}

/// Postgres stands still with all its connections open: no statement fails, and nothing was due when it began. Once it goes
/// on, whoever looks at the leases first must know that nobody could renew them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stands_still_burns_no_attempt() {
    stands_still(Servers::postgres_pid).await;
}

/// NATS stands still: dispatchers reach the database, and nobody reaches them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_stands_still_burns_no_attempt() {
    stands_still(Servers::nats_pid).await;
}

async fn stands_still(server: impl Fn(&Servers) -> u32) {
    let lease = Duration::from_secs(2);
    let stack = stack(lease).await;
    let gate = hold(&stack).await;
    // Dispatchers that have just started are patient for so long.
    tokio::time::sleep(redial_queue::LONGEST_RECONNECT + 2 * lease).await;
    let paused = Paused::new(server(&stack.servers));
    stack.ledger.reaches(Deed::Stopped, HELD).await;
    // Workers stop a little before the lease ends; this is about leases that have ended on record, too.
    tokio::time::sleep(lease / 2).await;
    drop(paused);
    std::fs::write(&gate, "").unwrap();
    all_done_at_once(stack, HELD).await;
}

/// A connection whose network went silent must not keep its place in the pool: nobody will ever say that it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_network_takes_no_connection_away() {
    const CONNECTIONS: u32 = 4;
    let servers = Servers::start().await;
    redial_store::admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
    redial_store::admin::migrate(servers.database_url()).await.unwrap();
    let (proxy, url) = FaultProxy::before(servers.database_url()).await;
    let store =
        Store::connect(&StoreConfig { url, connections: CONNECTIONS, purpose: Purpose::Dispatch }).await.unwrap();
    let looks = || join_all((0..CONNECTIONS).map(|_| store.next_wake()));
    assert!(looks().await.iter().all(Result::is_ok));
    // Those connections stay silent for ever; new ones work.
    proxy.lose(Side::Server);
    looks().await;
    // All of them at once, each in the hands of a statement that waits.
    let other = sqlx::PgPool::connect(servers.database_url()).await.unwrap();
    let mut lock = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE calls IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let everybody_waits = async {
        redial_testkit::until_within(LONG, "every connection is in use", async || {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&other).await.ok()?;
            (waiting == i64::from(CONNECTIONS)).then_some(())
        })
        .await;
        lock.rollback().await.unwrap();
    };
    let (looked, ()) = tokio::join!(looks(), everybody_waits);
    assert!(looked.iter().all(Result::is_ok), "{looked:?}");
}
