//! Servers go down and return, or return empty: every accepted call is finished, and no attempt is lost.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use redial_proto::{CallId, CallState, RetryOverride, Submission, ToolEffect};
use redial_queue::{Queue, QueueConfig};
use redial_store::{Purpose, Store, StoreConfig, StoreError};
use redial_test_stack::{
    FaultProxy, Process, RawNats, Servers, Side, Stack, ToolEvent, arguments, scripted_tool, unique_path,
};
use serde_json::json;

const LONG: Duration = Duration::from_mins(1);
/// Longer than an outage takes here: workers renew in time.
const LEASE: Duration = Duration::from_secs(30);
/// Shorter than an outage takes here; long enough for a machine that stops for two seconds now and then.
const SHORT: Duration = Duration::from_secs(5);

/// A stack whose two servers can be killed, with two dispatchers and two workers.
async fn stack(lease: Duration) -> Stack {
    let mut stack = Stack::on(Servers::start_own().await).await;
    stack.dispatcher.lease = lease;
    stack.redeliver_after(Duration::from_secs(2)).await;
    for _ in 0..2 {
        stack.dispatch().await;
        let tools = ToolEffect::ALL.map(|effect| scripted_tool(effect.as_str(), effect, &stack.ledger));
        stack.work(tools.into()).await;
    }
    stack
}

/// Every call succeeded in its first attempt, and had its effect once.
async fn each_ran_once(stack: Stack, calls: usize) {
    stack.drained(LONG).await;
    let ledger = stack.ledger.clone();
    let evidence = stack.finish().await;
    let retried: Vec<_> = evidence.calls.values().filter(|call| call.attempt != 1).collect();
    assert!(retried.is_empty(), "an attempt was lost: {retried:?}");
    assert_eq!(evidence.count(CallState::Succeeded), calls);
    let effects = ledger.entries().into_iter().filter(|entry| entry.event == ToolEvent::Effect);
    let effects: Vec<CallId> = effects.map(|entry| entry.call).collect();
    assert_eq!((effects.len(), effects.iter().collect::<HashSet<_>>().len()), (calls, calls));
}

#[tokio::test]
async fn a_failover_that_would_lose_commits_is_warned_of() {
    let stack = Stack::on(Servers::start().await).await;
    let (url, warning) = (stack.servers.database_url(), "Found no synchronous standby of Postgres");
    let host = url.rsplit_once('@').unwrap().1.split('/').next().unwrap();
    // One server with two addresses counts as several: somebody means to fail over.
    let several = url.replace(host, &format!("{host},{host}"));
    for (url, is_warned) in [(url.to_owned(), false), (several, true)] {
        let process = Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(["dispatcher", "--nats-url", stack.servers.nats_url(), "--database-url", &url]);
        });
        process.line("Dispatcher started").await;
        assert_eq!(process.output().contains(warning), is_warned, "{}", process.output());
    }
    stack.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nats_store_wiped_while_no_role_runs_loses_nothing() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &stack.ledger)]).await;
    stack.stop_workers().await;
    let waiting: Vec<Submission> = (0..50).map(|n| Submission::new("read", arguments(json!({"n": n})))).collect();
    stack.call_all(&waiting).await;
    stack.stop_dispatchers().await;
    stack.servers.kill_nats().await;
    stack.servers.wipe_nats();
    stack.servers.start_nats().await;
    stack.dispatch().await;
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &stack.ledger)]).await;
    each_ran_once(stack, 50).await;
}

/// Calls that [`hold`] starts.
const HELD: usize = 20;

/// Starts calls of these effects which run until this file is written, for two minutes at most, and have one attempt.
async fn hold(stack: &Stack, effects: &[ToolEffect]) -> PathBuf {
    let gate = unique_path("gate");
    let retry = Some(RetryOverride { max_attempts: Some(1), ..RetryOverride::default() });
    let held: Vec<Submission> = (0..HELD)
        .map(|n| {
            let orders = arguments(json!({"n": n, "hold": gate}));
            let call = Submission::new(effects[n % effects.len()].as_str(), orders);
            Submission { timeout_ms: Some(120_000), retry, ..call }
        })
        .collect();
    stack.call_all(&held).await;
    stack.ledger.reaches(ToolEvent::Started, HELD).await;
    gate
}

/// Both servers go down while tools run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_during_an_outage_of_both_servers_finishes() {
    let mut stack = stack(LEASE).await;
    let gate = hold(&stack, &ToolEffect::ALL).await;
    stack.servers.kill_nats().await;
    stack.servers.kill_postgres().await;
    // The tools end while their results cannot be reported.
    std::fs::write(&gate, "").unwrap();
    stack.ledger.reaches(ToolEvent::Effect, HELD).await;
    stack.servers.start_postgres().await;
    stack.servers.start_nats().await;
    each_ran_once(stack, HELD).await;
}

/// Workers must stop their tools when the lease ends, because they cannot know that no other worker was granted the calls.
/// They release the calls when the servers are back, and the attempts do not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_longer_than_the_leases_costs_no_attempt() {
    let mut stack = stack(SHORT).await;
    // Those that may run twice.
    let gate = hold(&stack, &[ToolEffect::Read, ToolEffect::Idempotent, ToolEffect::Keyed]).await;
    stack.servers.kill_nats().await;
    stack.ledger.reaches(ToolEvent::Stopped, HELD).await;
    stack.servers.start_nats().await;
    stack.ledger.reaches(ToolEvent::Started, 2 * HELD).await;
    stack.servers.kill_postgres().await;
    stack.ledger.reaches(ToolEvent::Stopped, 2 * HELD).await;
    stack.servers.start_postgres().await;
    std::fs::write(&gate, "").unwrap();
    each_ran_once(stack, HELD).await;
}

/// Nobody else is ever granted the attempt of an unsafe tool, so the end of its lease stops nothing. In the meantime the record says
/// since when its worker was not heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsafe_tool_goes_on_through_an_outage_longer_than_its_lease() {
    let mut stack = stack(SHORT).await;
    let gate = hold(&stack, &[ToolEffect::Unsafe]).await;
    stack.servers.kill_nats().await;
    let unheard = format!("SELECT count(*) = {HELD} FROM attempt_history WHERE unheard_since IS NOT NULL");
    stack.holds("all leases have ended", &unheard).await;
    let stopped = stack.ledger.entries().into_iter().filter(|entry| entry.event == ToolEvent::Stopped).count();
    assert_eq!(stopped, 0, "tools were stopped");
    stack.servers.start_nats().await;
    stack
        .holds("they are renewed", "SELECT NOT EXISTS (SELECT FROM attempt_history WHERE unheard_since IS NOT NULL)")
        .await;
    std::fs::write(&gate, "").unwrap();
    each_ran_once(stack, HELD).await;
}

/// A store of its own, behind a network that can fail.
async fn far_store(connections: u32) -> (Servers, FaultProxy, Store) {
    let servers = Servers::start().await;
    servers.create_database().await;
    let (proxy, url) = FaultProxy::before(servers.database_url()).await;
    let store = Store::connect(&StoreConfig { url, connections, purpose: Purpose::Dispatch }).await.unwrap();
    (servers, proxy, store)
}

/// A connection whose network went silent must leave the pool, because it is never closed by the other side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_network_costs_no_connection() {
    const CONNECTIONS: u32 = 4;
    let (servers, proxy, store) = far_store(CONNECTIONS).await;
    let looks = || join_all((0..CONNECTIONS).map(|_| store.next_wake(Duration::from_secs(1), &[])));
    assert!(looks().await.iter().all(Result::is_ok));
    // These connections stay silent; new ones work.
    proxy.lose(Side::Server);
    looks().await;
    // Uses all of them at once, each for a statement that waits.
    let other = sqlx::PgPool::connect(servers.database_url()).await.unwrap();
    let mut lock = other.begin().await.unwrap();
    sqlx::query("LOCK TABLE calls IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let all_wait = async {
        redial_test_stack::until_within(LONG, "every connection is in use", async || {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&other).await.ok()?;
            (waiting == i64::from(CONNECTIONS)).then_some(())
        })
        .await;
        lock.rollback().await.unwrap();
    };
    let (looked, ()) = tokio::join!(looks(), all_wait);
    assert!(looked.iter().all(Result::is_ok), "{looked:?}");
}

/// After a restart of Postgres all callers need new connections. Opened all at once, on a busy machine none was ready
/// within its time, and the next round began from nothing: the dispatchers never came back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_connections_are_opened_at_once() {
    let (_servers, proxy, store) = far_store(16).await;
    // No other is ever ready.
    let before = proxy.open();
    proxy.black_hole(true);
    let mut statements: FuturesUnordered<_> = (0..16).map(|_| store.now()).collect();
    let mut most = 0;
    let first = loop {
        tokio::select! {
            biased;
            first = statements.next() => break first.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(1)) => most = most.max(proxy.open()),
        }
    };
    assert!(first.as_ref().is_err_and(StoreError::is_transient), "{first:?}");
    assert!((before + 1..=before + 4).contains(&most), "{most} are open, {before} were before");
    drop(statements);
    proxy.black_hole(false);
    redial_test_stack::until("all of them are answered", async || {
        join_all((0..16).map(|_| store.now())).await.iter().all(Result::is_ok).then_some(())
    })
    .await;
}

/// Given up with its caller, no connection would ever be ready where opening one takes longer than a caller waits.
#[tokio::test]
async fn a_connection_whose_caller_is_gone_is_for_the_next_one() {
    let (servers, proxy, store) = far_store(1).await;
    let other = sqlx::PgPool::connect(servers.database_url()).await.unwrap();
    let idle = async || {
        let idle = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'redial' AND state = 'idle'";
        (sqlx::query_scalar::<_, i64>(idle).fetch_one(&other).await.unwrap() == 1).then_some(())
    };
    redial_test_stack::until_within(LONG, "one was ready after its caller had gone", async || {
        proxy.cut();
        proxy.black_hole(true);
        // The first one may learn that the connection was cut.
        while !matches!(store.now().await, Err(StoreError::Sql(sqlx::Error::PoolTimedOut))) {}
        proxy.black_hole(false);
        // It has 2 s more, which a machine in full use may miss.
        tokio::time::timeout(SHORT, redial_test_stack::until("", idle)).await.ok()
    })
    .await;
    assert!(store.now().await.is_ok());
}

/// A client that stood still finds what was delivered meanwhile after the end of its request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_delivered_while_a_client_hears_nothing_is_not_lost() {
    let servers = Servers::start().await;
    let (proxy, url) = FaultProxy::before(servers.nats_url()).await;
    let queue = |url: &str| QueueConfig { url: url.to_owned(), ..QueueConfig::default() };
    let (near, far) = (queue(servers.nats_url()), queue(&url));
    let (near, far) = (Queue::connect(&near).await.unwrap(), Queue::connect(&far).await.unwrap());
    redial_test_stack::until("the streams are there", async || near.ensure_streams().await.ok()).await;
    let mut results = far.results();
    let mut nats = RawNats::connect(servers.nats_url()).await;
    let mut consumer_has = async |field: &str| {
        redial_test_stack::until(field, async || {
            let info = nats.jetstream("CONSUMER.INFO.RESULTS.dispatchers", &json!({})).await;
            (info[field] == 1).then_some(())
        })
        .await;
    };
    let receiving = tokio::spawn(async move { results.next(10).await });
    consumer_has("num_waiting").await;
    proxy.deafen(Side::Client, true);
    near.put("redial.results.tools", &1).await.unwrap();
    consumer_has("num_ack_pending").await;
    // It asks again once its request is overdue.
    consumer_has("num_waiting").await;
    proxy.deafen(Side::Client, false);
    let received = receiving.await.unwrap();
    assert_eq!((&received[0].payload[..], received[0].delivered), (&b"1"[..], 1));
}
