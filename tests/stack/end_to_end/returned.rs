//! Jobs that a worker gives back: they are published again, and nothing else is.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redial_proto::{CallId, Job, Pack, PackedJob, ReturnedPack, ToolEffect, ToolSpec};
use redial_test_stack::{Stack, until};
use serde_json::json;

use super::by_hand::Hand;

fn pack(hand: &Hand, jobs: impl IntoIterator<Item = CallId>) -> ReturnedPack {
    let jobs = jobs.into_iter().map(|call| PackedJob { call, attempt: 1, bytes: 2 }).collect();
    ReturnedPack { consumer: hand.consumer.clone(), pack: Pack { tool: "read".to_owned(), jobs } }
}

/// The jobs of these calls were published so long ago. Nobody looks for those that are not claimed, which else begins after 10 s.
async fn published_ago(stack: &Stack, calls: &[CallId], seconds: f64) {
    let ids: Vec<_> = calls.iter().map(|call| call.0).collect();
    let set = "UPDATE calls SET published_at = clock_timestamp() - $2 * interval '1 s',
                      wake_at = CASE WHEN state = 'ready' THEN deadline_at ELSE wake_at END
               WHERE id = ANY ($1)";
    sqlx::query(set).bind(ids).bind(seconds).execute(stack.db()).await.unwrap();
}

async fn waits(stack: &Stack, jobs: u64) {
    until("the jobs are on the stream", async || {
        (stack.queue().ensure_streams().await.unwrap().jobs == jobs).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_a_worker_gives_back_is_published_again_and_nothing_else() {
    let stack = Stack::start_leasing(Duration::from_secs(30)).await;
    let spec = ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("read") };
    let mut hand = Hand::new(&stack, vec![spec]).await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        stack.call("read", json!({})).await;
        calls.push(hand.job().await.call);
    }
    waits(&stack, 0).await;
    let [first, second, third, fourth] = calls[..] else { unreachable!("there are four") };
    // Jobs that are none; of calls that run; and, without a grant, what was published a moment ago.
    let invented = || pack(&hand, (0..64).map(|_| CallId::generate()));
    hand.claim_and_return(&[], (0..200).map(|_| invented()).collect()).await;
    assert_eq!(hand.claim(first, 1).await.len(), 1);
    hand.claim_and_return(&[], vec![pack(&hand, [first])]).await;
    // A time to come is no older, however long it takes until somebody looks.
    published_ago(&stack, &[third, fourth], -30.0).await;
    hand.claim_and_return(&[], vec![pack(&hand, [third, fourth])]).await;
    // The rest of a pack of which a job was granted, each once, and in messages of one job: the worker has few slots.
    hand.claim_and_return(&[second], vec![pack(&hand, [third, fourth, third])]).await;
    waits(&stack, 2).await;
    assert_eq!([hand.job().await.call, hand.job().await.call], [third, fourth]);
    // Without a grant once they are older, and then they are as new as any.
    published_ago(&stack, &calls, 2.0).await;
    let before = "SELECT clock_timestamp()";
    let before: DateTime<Utc> = sqlx::query_scalar(before).fetch_one(stack.db()).await.unwrap();
    hand.claim_and_return(&[], vec![pack(&hand, [third, fourth])]).await;
    waits(&stack, 2).await;
    let first = "SELECT min(published_at) FROM calls WHERE id = ANY ($1)";
    let first: DateTime<Utc> =
        sqlx::query_scalar(first).bind(vec![third.0, fourth.0]).fetch_one(stack.db()).await.unwrap();
    assert!(first > before, "published at {first}, given back after {before}");
    for call in [third, fourth] {
        let Job { call: again, .. } = hand.job().await;
        assert_eq!((again, hand.claim(call, 1).await.len()), (call, 1));
    }
    for call in calls {
        hand.report(call, 1, Ok("1")).await;
        stack.ended(call).await;
    }
    stack.finish().await;
}
