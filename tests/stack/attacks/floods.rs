//! Users and workers that send as much as they can, or what stops those who read it.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redial_proto::{
    CallId, Submission, SubmitBatch, SubmitBatchReply, SubmitResult,
    subjects::{self, Intake, Verb},
};
use redial_queue::Queue;
use redial_testkit::{arguments, until};
use serde_json::{json, value::to_raw_value};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::world::{ANSWER, World};

/// The flood: so many calls at a time, again and again.
const BATCH: usize = 1_000;
const BATCHES: usize = 4;
/// The calls that are measured, one after another.
const MEASURED: u32 = 100;
const PAUSE: Duration = Duration::from_millis(60);

fn slow() -> Submission {
    Submission::new("slow", arguments(json!({})))
}

/// Submits call after call; returns the time from the request to the end of each, in ms, and its id.
async fn measure(queue: &Queue, db: &PgPool) -> Vec<(f64, CallId)> {
    let one = async |n: u32| {
        tokio::time::sleep(PAUSE * n).await;
        let began = Instant::now();
        let result: SubmitResult = queue.ask(Verb::CallSubmit, &slow(), ANSWER).await.unwrap();
        (began.elapsed().as_secs_f64() * 1_000.0, result.call.unwrap())
    };
    let submitted = join_all((0..MEASURED).map(one)).await;
    let mut measured = Vec::new();
    for (asked, call) in submitted {
        let ran = "SELECT extract(epoch FROM finished_at - submitted_at)::float8 * 1000 FROM calls WHERE id = $1";
        let ran: f64 = until("the call has ended", async || {
            sqlx::query_scalar::<_, Option<f64>>(ran).bind(call.0).fetch_one(db).await.unwrap()
        })
        .await;
        measured.push((asked + ran, call));
    }
    measured
}

fn p99(measured: &[(f64, CallId)]) -> f64 {
    let mut times: Vec<f64> = measured.iter().map(|(ms, _)| *ms).collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() * 99 / 100 - 1]
}

/// Calls of the flood that were submitted before each of these, and started while it waited.
async fn overtaken_by(db: &PgPool, calls: &[(f64, CallId)]) -> i64 {
    let ids: Vec<_> = calls.iter().map(|(_, call)| call.0).collect();
    let most = "SELECT max(others.calls) FROM calls c CROSS JOIN LATERAL (
                    SELECT count(*) AS calls FROM calls o
                    WHERE o.tenant = 'acme' AND o.submitted_at < c.submitted_at
                        AND o.started_at > c.submitted_at AND o.started_at < c.started_at) others
                WHERE c.id = ANY ($1)";
    sqlx::query_scalar(most).bind(ids).fetch_one(db).await.unwrap()
}

/// Submits batch after batch until it is over.
async fn flood(queue: Queue, over: CancellationToken) {
    while !over.is_cancelled() {
        let batch = SubmitBatch { calls: vec![to_raw_value(&slow()).unwrap(); BATCH] };
        let _: Result<SubmitBatchReply, _> = queue.ask(Verb::CallSubmit, &batch, ANSWER).await;
        over.run_until_cancelled(tokio::time::sleep(Duration::from_secs(2))).await;
    }
}

/// Waits until nothing of the flood is left. Most of it never has its turn.
async fn ebb(world: &World, db: &PgPool) {
    until("nothing of the flood is left", async || {
        // The dispatcher writes some of them at this moment, in another order: a deadlock may end this.
        let delete = "DELETE FROM calls WHERE tenant = 'acme' AND backlog_at IS NOT NULL AND attempt = 0";
        sqlx::query(delete).execute(db).await.ok()?;
        (world.count("calls WHERE tenant = 'acme' AND wake_at IS NOT NULL").await == 0).then_some(())
    })
    .await;
}

/// The workers have 64 slots, and each call takes 0.3 s: the flood alone keeps them busy for minutes.
#[tokio::test]
async fn a_tenant_that_floods_delays_no_other() {
    let world = World::start_alone().await;
    let (alice, bob) = (world.user("acme.alice").await, world.user("globex.bob").await);
    let db = PgPool::connect(world.servers.database_url()).await.unwrap();
    let waiting = "calls WHERE tenant = 'acme' AND backlog_at IS NOT NULL";
    let mut ratios = Vec::<f64>::new();
    // The machine may be busy with other things for a moment, or from now on.
    while ratios.len() < 10 && ratios.iter().all(|ratio| *ratio > 1.5) {
        let before = p99(&measure(&bob, &db).await);
        let (mut senders, over) = (JoinSet::new(), CancellationToken::new());
        for _ in 0..BATCHES {
            senders.spawn(flood(alice.clone(), over.clone()));
        }
        until("the flood waits", async || (world.count(waiting).await > 3_000).then_some(())).await;
        let beside = measure(&bob, &db).await;
        assert!(world.count(waiting).await > 1_000, "it is a flood all the time");
        let overtaken = overtaken_by(&db, &beside).await;
        assert!(overtaken <= 128, "{overtaken} calls of the flood were published before, and went before");
        ratios.push(p99(&beside) / before);
        over.cancel();
        senders.join_all().await;
        ebb(&world, &db).await;
    }
    println!("p99 beside the flood, as a ratio: {ratios:.2?}");
    assert!(ratios.iter().any(|ratio| *ratio <= 1.5), "{ratios:.2?}");
    db.close().await;
    world.stop().await;
}

/// nats-server stores what a sender calls a status, and a client takes it for one of the server.
#[tokio::test]
async fn messages_with_a_status_hold_up_no_stream() {
    let world = World::start().await;
    let flood = |subject: &str| {
        let header = "NATS/1.0 404 x\r\n\r\n";
        let one = format!("HPUB {subject} {} {}\r\n{header}{{}}\r\n", header.len(), header.len() + 2);
        one.repeat(1_000).into_bytes()
    };
    world.raw("worker.rogue").await.send_raw(&flood("redial.results.rogue")).await;
    world.raw("globex.bob").await.send_raw(&flood("redial.intake.globex.bob.submit.calls")).await;
    let alice = world.user("acme.alice").await;
    let put = br#"{"tool":"echo","arguments":{},"key":"stream"}"#.as_slice();
    alice.put_intake(Intake::Calls, put.into(), None).await.unwrap();
    until("the call of the stream has ended", async || {
        (world.count("calls WHERE tenant = 'acme' AND key = 'stream' AND state = 'succeeded'").await == 1).then_some(())
    })
    .await;
    world.stop().await;
}

/// The client of a dispatcher does not survive each subject that nats-server stores.
#[tokio::test]
async fn nobody_may_publish_to_odd_subjects() {
    let world = World::start().await;
    let mut bob = world.raw("globex.bob").await;
    for odd in [b"\xff".as_slice(), "\u{3000}".as_bytes(), b"x.calls", b"other"] {
        for below in
            ["redial.intake.globex.bob.submit.", "redial.api.globex.bob.submit.", "redial.api.globex.bob.read."]
        {
            let lines = [b"PUB ", below.as_bytes(), odd, b" 2\r\n{}\r\n"].concat();
            bob.refusals.clear();
            bob.send_raw(&lines).await;
            assert!(bob.refusals.iter().any(|said| said.contains("Permissions Violation")), "{below}{odd:?}");
        }
    }
    let subject = subjects::intake(
        &"globex".parse().unwrap(),
        &"bob".parse().unwrap(),
        redial_proto::UserRole::Submit,
        Intake::Calls,
    );
    bob.refusals.clear();
    bob.publish(&subject, "", "", "{}").await;
    assert_eq!(bob.refusals, Vec::<String>::new());
    world.stop().await;
}
