//! Jobs that a worker gives back: they are published again, and nothing else is.

use std::time::Duration;

use redial_proto::{CallId, Job, Pack, PackedJob, ReturnedPack, ToolEffect, ToolSpec};
use redial_test_stack::{Stack, until};
use serde_json::json;

use super::by_hand::Hand;

fn pack(hand: &Hand, jobs: impl IntoIterator<Item = CallId>) -> ReturnedPack {
    let jobs = jobs.into_iter().map(|call| PackedJob { call, attempt: 1, bytes: 2 }).collect();
    ReturnedPack { consumer: hand.consumer.clone(), pack: Pack { tool: "read".to_owned(), jobs } }
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
    assert_eq!(hand.claim(first, 1).await.len(), 1);
    // Without a grant, what was published a moment ago stays where it is: in a time to come, however long the machine takes.
    let set = "UPDATE calls SET published_at = clock_timestamp() + interval '1 h', wake_at = deadline_at WHERE state = 'ready'";
    stack.execute(set).await;
    hand.claim_and_return(&[], vec![pack(&hand, [third, fourth])]).await;
    // The rest of a pack of which a job was granted, each once, and in messages of one job: the worker has few slots.
    hand.claim_and_return(&[second], vec![pack(&hand, [third, fourth, third])]).await;
    waits(&stack, 2).await;
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
