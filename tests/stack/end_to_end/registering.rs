//! Workers register their tools, and learn from which consumers they pull.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, ClaimId, Code, ForgetTool, ForgetToolReply, JobRef, Submission, SubmitStatus, ToolEffect, ToolSpec,
    WaitReason, subjects::Verb,
};
use redial_store::Purpose;
use redial_test_stack::{Stack, arguments, scripted_tool};
use serde_json::json;

use super::by_hand::Hand;

/// The consumer of a worker that is not seen for long is given to others. If it lives after all, it must not keep it: it would
/// be handed jobs that it cannot run, and nobody would be handed those of its own tools.
#[tokio::test]
async fn a_worker_whose_consumer_was_given_away_registers_again() {
    let mut stack = Stack::start().await;
    let mut silent = Hand::new(&stack, vec![ToolSpec::named("old")]).await;
    assert!(!silent.beat().await.register, "it is known");
    let earlier = "UPDATE workers SET last_seen_at = last_seen_at - interval '3 min', live_until = now()
                   RETURNING last_seen_at";
    let seen: DateTime<Utc> = stack.value(earlier).await;
    stack.work(vec![scripted_tool("new", ToolEffect::Read, &stack.ledger)]).await;
    let consumers: Vec<(String, Vec<String>)> = stack.rows("SELECT name, tools FROM consumers").await;
    assert_eq!(consumers, [("default".to_owned(), vec!["new".to_owned()])], "it was given away");
    assert!(silent.beat().await.register, "it is unknown now");
    let last_served: DateTime<Utc> = stack.value("SELECT last_served_at FROM tools WHERE name = 'old'").await;
    assert_eq!(last_served, seen, "its tool is remembered");

    let waiting = stack.call("old", json!({})).await;
    let reason = stack.get(waiting).await.waits.map(|waits| waits.reason);
    assert_eq!(reason, Some(WaitReason::Worker), "an old row does not make the tool served");
    silent.register(vec![ToolSpec::named("old")]).await;
    assert_eq!(silent.consumer, "default+2");
    assert_eq!(silent.granted().await.call, waiting);
    silent.report(waiting, 1, Ok("1")).await;
    let new = stack.call("new", json!({})).await;
    stack.output(new).await;
    stack.finish().await;
}

/// A worker learns with its first grant how long a lease is. Until then, it sends a heartbeat every 5 s.
#[tokio::test]
async fn a_worker_that_runs_nothing_is_live_for_longer_than_a_short_lease() {
    let stack = Stack::start_leasing(Duration::from_secs(2)).await;
    let idle = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let long = "workers WHERE live_until > last_seen_at + interval '14 s'";
    assert_eq!(stack.count(long).await, 1, "after its registration");
    idle.beat().await;
    assert_eq!(stack.count(long).await, 1, "after a heartbeat");
    stack.finish().await;
}

/// Its last heartbeat may overtake what it sent before.
#[tokio::test]
async fn a_worker_that_has_ended_does_not_come_back() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let ended = "workers WHERE draining AND slots = 0 AND running = 0 AND live_until <= clock_timestamp()";
    worker.beat().await;
    assert_eq!(stack.count(ended).await, 0);
    worker.say_goodbye().await;
    assert_eq!(stack.count(ended).await, 1);
    let held = JobRef { call: CallId::generate(), attempt: 1 }.granted_to(ClaimId::generate());
    worker.beat_with(vec![held]).await;
    assert_eq!(stack.count(ended).await, 1, "a heartbeat");
    worker.register(vec![ToolSpec::named("tool")]).await;
    assert_eq!(stack.count(ended).await, 1, "a registration");
    stack.finish().await;
}

/// Dispatchers read all workers once a second, and each new id would be one more.
#[tokio::test]
async fn an_identity_has_so_many_workers_and_others_have_theirs() {
    let stack = Stack::start().await;
    let tool = |name: &str| vec![ToolSpec::named(name)];
    let mut known = Hand::new(&stack, tool("tool")).await;
    let rows = |prefix: &str, count: u32, live: &str| {
        format!(
            "INSERT INTO workers (id, version, tools, started_at, slots, live_until)
             SELECT '{prefix}' || n, 'row', '{{}}', now(), 1, now() + interval '{live}' FROM generate_series(1, {count}) n"
        )
    };
    stack.execute(&rows("manual-", 1_999, "1 hour")).await;
    let more = Hand::of_identity(&stack, "manual").await;
    let refused = more.try_register(tool("tool")).await.unwrap_err();
    let told = ["\"manual\" has 2000 workers that are alive", "[workers.NAME]", "tries again"];
    let is_told = told.iter().all(|part| refused.message.contains(part));
    assert!(refused.code == Code::Unavailable && is_told, "{refused:?}");
    known.register(tool("tool")).await;
    let other = Hand::of_identity(&stack, "other").await;
    other.try_register(tool("of-another")).await.unwrap();
    stack.execute("UPDATE workers SET live_until = now() WHERE version = 'row'").await;
    more.try_register(tool("tool")).await.unwrap();

    // Those that are gone are not kept without an end either.
    stack.execute(&rows("manual-gone", 2_001, "0")).await;
    stack.execute(&rows("other-gone", 1, "0")).await;
    more.try_register(tool("tool")).await.unwrap();
    assert_eq!(stack.values::<String>("SELECT id FROM workers WHERE version = 'row'").await, ["other-gone1"]);
    stack.finish().await;
}

/// Of what is published of a tool, no more waits than a part of what its workers can run.
#[tokio::test]
async fn a_consumer_has_the_slots_of_its_pool() {
    let mut stack = Stack::start().await;
    let tool = |name, pool| scripted_tool(name, ToolEffect::Read, &stack.ledger).pool(pool);
    stack.work(vec![tool("quick", "quick"), tool("slow", "slow").concurrency(2)]).await;
    let by_hand = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let working = stack.store(Purpose::Dispatch).await.working_consumers().await.unwrap();
    let slots: BTreeMap<_, _> = working.into_iter().map(|one| (one.consumer.pool, one.consumer.slots)).collect();
    assert_eq!(slots["slow"], 2);
    assert!(slots["quick"] > 2 && slots["default"] == 7, "one that names no pools has its slots in each: {slots:?}");
    drop(by_hand);
    stack.finish().await;
}

/// The notice of a change is lost if the dispatcher reconnects to NATS at that moment.
#[tokio::test]
async fn a_dispatcher_without_notice_of_a_changed_tool_learns_of_it() {
    let mut stack = Stack::start().await;
    let _worker = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let submission = Submission { key: Some("key".to_owned()), ..Submission::new("tool", arguments(json!({}))) };
    stack.accepted(&submission).await;
    // Under a key that is taken: other content is a conflict for now.
    let other = Submission { arguments: arguments(json!({"n": 1})), ..submission };
    let spec = ToolSpec { parameters: json!({"required": ["city"]}), ..ToolSpec::named("tool") };
    stack.execute(&format!("UPDATE tools SET spec = '{}' WHERE name = 'tool'", json!(spec))).await;
    redial_test_stack::until("its new schema applies", async || {
        let result = stack.submit(&other).await;
        (result.status == SubmitStatus::Refused).then_some(())
    })
    .await;
    stack.leaves_calls();
    stack.finish().await;
}

/// The names of its tools alone are longer than an index entry may be.
#[tokio::test]
async fn a_worker_with_a_thousand_tools_has_a_consumer() {
    let stack = Stack::start().await;
    let tools =
        || (0..1_000).map(|n| ToolSpec::named(format!("{n}_{}", uuid::Uuid::new_v4().simple()))).collect::<Vec<_>>();
    let (one, two) = (tools(), tools());
    let called = two[999].name.clone();
    let hand = Hand::new(&stack, one.clone()).await;
    let mut other = Hand::new(&stack, two).await;
    let same = Hand::new(&stack, one).await;
    assert_eq!([&hand.consumer, &other.consumer, &same.consumer], ["default", "default+2", "default"]);
    let call = stack.call(&called, json!({})).await;
    assert_eq!(other.granted().await.call, call);
    other.report(call, 1, Ok("1")).await;
    stack.output(call).await;
    stack.finish().await;
}

/// It was cut off for a lease, and nobody knows that it still has the tool.
#[tokio::test]
async fn a_worker_registers_again_if_its_tool_was_forgotten_while_it_was_silent() {
    let stack = Stack::start().await;
    let silent = Hand::new(&stack, vec![ToolSpec::named("cut"), ToolSpec::named("other")]).await;
    assert!(!silent.beat().await.register, "it is known");
    stack.execute("UPDATE workers SET live_until = now() - interval '1 s'").await;
    stack.execute("INSERT INTO retry_budgets (tool, tokens, failing_since) VALUES ('cut', 0, now())").await;
    let request = ForgetTool { tool: "cut".to_owned() };
    // A worker that is silent since the start of the dispatcher may live still.
    let forgotten = redial_test_stack::until("the tool is forgotten", async || {
        let asked = stack.queue().ask(Verb::ToolForget, &request, Duration::from_secs(10));
        asked.await.ok().map(|reply: ForgetToolReply| reply.waiting)
    });
    assert_eq!(forgotten.await, 0);
    let failing = stack.count("retry_budgets WHERE failing_since IS NOT NULL").await;
    assert_eq!(failing, 0, "another tool of the name starts without a history");
    assert!(silent.beat().await.register, "it is unknown now");
    let served = stack.count("tools WHERE name = 'other' AND last_served_at IS NOT NULL").await;
    assert_eq!(served, 1, "its other tool is remembered");
    stack.finish().await;
}
