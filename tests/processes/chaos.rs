//! The chaos test: every kind of process is killed at random while 2,000 calls go through, and afterwards every
//! invariant must hold. `cargo test -p redial --test processes -- chaos --include-ignored --nocapture` shows the counts; `CHAOS_SEED` repeats a run.

#![expect(clippy::print_stdout, reason = "the counts are there to be read")]

use std::{collections::BTreeMap, time::Duration};

use chrono::Utc;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use redial_proto::{CallState, Submission, ToolEffect};
use redial_testkit::{
    Evidence, Ledger, Process, Servers, Stack, ToolEvent, arguments, start_scripted_worker, until_within,
};
use serde_json::{Value, json};

const CALLS: usize = 2_000;
const BATCH: usize = 100;
/// Calls that may wait or run before the next batch is sent: enough that every kill hits some.
const MAX_LIVE: usize = 250;
const DISPATCHERS: usize = 2;
const WORKERS: usize = 3;
/// How long the whole test may take.
const LONG: Duration = Duration::from_mins(10);

/// What can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Dispatcher,
    Worker,
    Nats,
    Postgres,
}

/// How often each is killed.
const KILLS: [(Kind, usize); 4] = [(Kind::Dispatcher, 6), (Kind::Worker, 6), (Kind::Nats, 3), (Kind::Postgres, 3)];

/// Calls of all four effects. Nine in ten do their work at once; of the others, most fail once or twice, some for good.
fn submissions(random: &mut StdRng) -> Vec<Submission> {
    let one = |n: usize| {
        let effect = ToolEffect::ALL[n % 4];
        let mut orders = json!({
            "n": n, "before_ms": random.random_range(0..40), "after_ms": random.random_range(0..40),
        });
        match random.random_range(0..40) {
            0 => add(&mut orders, &json!({"fail": "unavailable", "times": 1, "harmless": true})),
            1 => {
                add(&mut orders, &json!({"fail": "rate_limited", "times": 2, "harmless": true, "retry_after_ms": 200}));
            }
            2 => add(&mut orders, &json!({"fail": "business_rule", "harmless": true})),
            3 => add(&mut orders, &json!({"fail": "unavailable", "times": 1})),
            _ => {}
        }
        Submission { key: Some(format!("chaos-{n}")), ..Submission::new(effect.as_str(), arguments(orders)) }
    };
    (0..CALLS).map(one).collect()
}

fn add(orders: &mut Value, more: &Value) {
    for (name, value) in more.as_object().unwrap() {
        orders[name] = value.clone();
    }
}

/// The processes that are killed and started again.
struct Fixture {
    stack: Stack,
    dispatchers: Vec<Process>,
    workers: Vec<Process>,
}

impl Fixture {
    async fn start() -> Self {
        let stack = Stack::on(Servers::start_own().await).await;
        stack.redeliver_after(Duration::from_secs(2)).await;
        let mut fixture = Self { stack, dispatchers: Vec::new(), workers: Vec::new() };
        for _ in 0..DISPATCHERS {
            let dispatcher = fixture.dispatcher();
            dispatcher.line("Dispatcher started").await;
            fixture.dispatchers.push(dispatcher);
        }
        for _ in 0..WORKERS {
            fixture.workers.push(fixture.worker());
        }
        fixture.stack.offered(&ToolEffect::ALL.map(ToolEffect::as_str)).await;
        fixture
    }

    fn dispatcher(&self) -> Process {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(["dispatcher", "--lease", "10s", "--database-connections", "8"]);
            command.args(["--nats-url", self.stack.servers.nats_url()]);
            command.args(["--database-url", self.stack.servers.database_url()]);
        })
    }

    fn worker(&self) -> Process {
        start_scripted_worker(self.stack.servers.nats_url(), &self.stack.ledger, Duration::from_secs(1))
    }

    /// Kills one of a kind, and starts another.
    async fn kill(&mut self, kind: Kind, random: &mut StdRng) {
        println!("chaos: kill {kind:?} at {}", Utc::now());
        match kind {
            Kind::Dispatcher => {
                let n = random.random_range(0..DISPATCHERS);
                self.dispatchers[n].kill().await;
                self.dispatchers[n] = self.dispatcher();
            }
            Kind::Worker => {
                let n = random.random_range(0..WORKERS);
                self.workers[n].kill().await;
                self.workers[n] = self.worker();
            }
            Kind::Nats => {
                self.stack.servers.kill_nats().await;
                self.stack.servers.start_nats().await;
            }
            Kind::Postgres => {
                self.stack.servers.kill_postgres().await;
                self.stack.servers.start_postgres().await;
            }
        }
    }

    /// Calls on record that have ended. Waits while the database is starting.
    async fn ended(&self) -> usize {
        until_within(LONG, "the database answers how many calls have ended", async || {
            let ended = "SELECT count(*) FROM calls WHERE wake_at IS NULL";
            let count: i64 = sqlx::query_scalar(ended).fetch_one(self.stack.db()).await.ok()?;
            usize::try_from(count).ok()
        })
        .await
    }

    /// Submits a batch until every call of it is accepted.
    async fn submit(&self, batch: &[Submission]) {
        until_within(LONG, "a batch is accepted", async || {
            let results = self.stack.try_submit_all(batch).await.ok()?;
            results.iter().all(|result| result.call.is_some()).then_some(())
        })
        .await;
    }
}

/// The kinds of processes to kill, in random order.
fn schedule(random: &mut StdRng) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = KILLS.into_iter().flat_map(|(kind, count)| vec![kind; count]).collect();
    kinds.shuffle(random);
    kinds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_of_random_processes_violates_no_invariant() {
    let seed = std::env::var("CHAOS_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("chaos: seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (submissions, mut kinds) = (submissions(&mut random), schedule(&mut random));
    let mut fixture = Fixture::start().await;
    let (mut sent, between) = (0, CALLS / (kinds.len() + 2));
    let mut next_kill = random.random_range(between / 2..between);
    let all = until_within(2 * LONG, "", async || {
        let ended = fixture.ended().await;
        if sent < CALLS && sent - ended.min(sent) < MAX_LIVE {
            fixture.submit(&submissions[sent..sent + BATCH]).await;
            sent += BATCH;
        }
        if ended >= next_kill
            && let Some(kind) = kinds.pop()
        {
            fixture.kill(kind, &mut random).await;
            next_kill += between;
        }
        (ended == CALLS && kinds.is_empty()).then_some(())
    });
    let ended = tokio::time::timeout(LONG, all).await;
    assert!(ended.is_ok(), "after {LONG:?} these calls have not ended:\n{}", fixture.stack.live().await);
    let ledger = fixture.stack.ledger.clone();
    fixture.stack.wait_until_empty().await;
    for process in fixture.workers.into_iter().chain(fixture.dispatchers) {
        process.terminate();
        assert!(process.ended().await.success(), "{}", process.output());
        print_leases(&process);
    }
    let killed = sqlx::query_scalar("SELECT id FROM workers WHERE NOT draining").fetch_all(fixture.stack.db()).await;
    fixture.stack.workers_died(killed.unwrap());
    let evidence = fixture.stack.finish().await;
    assert_eq!(evidence.calls.len(), CALLS);
    assert!(evidence.lost() > 0, "six workers were killed and no attempt was lost");
    print(&evidence, &ledger);
}

/// What a process that lived to the end says of leases: shown if an attempt was lost that should not have been.
fn print_leases(process: &Process) {
    let output = process.output();
    let tells = |line: &&str| ["lease", "heartbeat", "claim", "Sweep failed"].iter().any(|word| line.contains(word));
    output.lines().filter(tells).for_each(|line| println!("{line}"));
}

fn print(evidence: &Evidence, ledger: &Ledger) {
    let attempts = evidence.attempts().count();
    let effects = ledger.entries().iter().filter(|entry| entry.event == ToolEvent::Effect).count();
    let kills = KILLS.map(|(kind, count)| format!("{count} {kind:?}")).join(", ").to_lowercase();
    let mut ends = BTreeMap::new();
    for state in CallState::ALL {
        ends.insert(state.as_str(), evidence.count(state));
    }
    ends.retain(|_, count| *count > 0);
    println!(
        "chaos: {CALLS} calls, {attempts} attempts, {effects} effects; killed with SIGKILL: {kills}; \
         {} attempts lost, {} late results; ended: {ends:?}; every invariant holds",
        evidence.lost(),
        evidence.late_reports,
    );
}
