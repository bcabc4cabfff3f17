//! Streams of a cluster.

use redial_proto::{
    ToolEffect,
    subjects::{INTAKE_STREAM, JOBS_STREAM, RESULTS_STREAM},
};
use redial_test_stack::{RawNats, Servers, Stack, scripted_tool, until_within};
use serde_json::Value;

use super::LONG;

/// The replicas that each stream and each consumer has besides its leader; `None` while one has no leader.
async fn followers(url: &str) -> Option<Vec<usize>> {
    let of = |info: &Value| info["cluster"]["replicas"].as_array().map_or(0, Vec::len);
    let mut found = Vec::new();
    for stream in [JOBS_STREAM, RESULTS_STREAM, INTAKE_STREAM] {
        let info = RawNats::ask(url, &format!("STREAM.INFO.{stream}")).await?;
        info["cluster"]["leader"].as_str()?;
        found.push(of(&info));
        let consumers = RawNats::ask(url, &format!("CONSUMER.LIST.{stream}")).await?;
        found.extend(consumers["consumers"].as_array()?.iter().map(of));
    }
    Some(found)
}

/// Waits until every stream and every consumer has so many followers.
async fn all_have(stack: &Stack, wanted: usize) {
    until_within(LONG, "streams and consumers have their replicas", async || {
        let found = followers(stack.servers.one_nats_url()).await?;
        (found.len() >= 6 && found.iter().all(|followers| *followers == wanted)).then_some(())
    })
    .await;
}

/// When the job stream was made.
async fn created(stack: &Stack) -> Value {
    let created = until_within(LONG, "the job stream has a leader", async || {
        RawNats::ask(stack.servers.one_nats_url(), &format!("STREAM.INFO.{JOBS_STREAM}")).await
    });
    created.await["created"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "nightly: a cluster of NATS"]
async fn replicas_are_given_to_existing_streams_and_kept_after_a_wipe() {
    let mut stack = Stack::on(Servers::start().await.with_cluster().await).await;
    stack.dispatch().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    all_have(&stack, 0).await;
    let before = created(&stack).await;

    stack.stop_dispatchers().await;
    stack.dispatcher.nats_replicas = Some(3);
    stack.dispatch().await;
    all_have(&stack, 2).await;
    let after = created(&stack).await;
    assert_eq!(before, after, "it was updated, not made again");

    // One without the setting makes the streams again.
    stack.stop_dispatchers().await;
    stack.dispatcher.nats_replicas = None;
    stack.dispatch().await;
    stack.servers.kill_nats().await;
    stack.servers.wipe_nats();
    stack.servers.start_nats().await;
    all_have(&stack, 2).await;
    assert_ne!(created(&stack).await, after);
    stack.finish().await;
}
