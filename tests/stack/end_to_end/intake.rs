//! Submissions through the intake stream: accepted once, however often they are delivered, or kept as dead letters.

use std::time::Duration;

use redial_proto::{CallId, CallState, subjects::Intake};
use redial_test_stack::{FaultProxy, Servers, Stack, until};
use redial_tools::Tool;
use serde_json::{Value, json};

use super::fixture::dead_letters;

async fn calls(stack: &Stack, count: usize) -> Vec<CallId> {
    until(&format!("{count} calls are on record"), async || {
        let ids = stack.values("SELECT id FROM calls ORDER BY id").await;
        (ids.len() >= count).then(|| ids.into_iter().map(CallId).collect())
    })
    .await
}

#[tokio::test]
async fn invalid_messages_become_dead_letters_with_the_reason() {
    let stack = Stack::with_echo().await;
    let mut nats = stack.raw_nats().await;
    let garbage = b"\x00\xffgarbage";
    nats.publish(&stack.intake(Intake::Calls), garbage).await;
    let foreign = json!({"tool": "echo", "arguments": {}, "tenant": "globex"});
    let good = |n: u32| json!({"tool": "echo", "arguments": {"n": n}});
    let batch = json!({"calls": [good(1), {"tool": "echo"}, good(2), foreign]});
    nats.publish(&stack.intake(Intake::Calls), batch.to_string().as_bytes()).await;
    nats.publish(&stack.intake(Intake::Calls), br#"{"tool":"nobody","arguments":{}}"#).await;
    let calls = calls(&stack, 3).await;
    let kept = dead_letters(&stack, "intake", 2).await;
    assert_eq!((kept[0].0.as_str(), kept[0].2.as_slice()), ("invalid_message", garbage.as_slice()));
    assert!(kept[0].1.contains("a JSON object is needed"), "{}", kept[0].1);
    assert!(kept[1].1.contains("missing field `arguments`"), "{}", kept[1].1);
    assert_eq!(serde_json::from_slice::<Value>(&kept[1].2).unwrap(), batch, "the whole message is stored");
    let errors: Vec<Option<Value>> = stack.values("SELECT errors FROM dead_letters ORDER BY id").await;
    assert_eq!(errors[0].as_ref().unwrap()[0]["position"], Value::Null, "the message as a whole");
    let of_batch = errors[1].as_ref().unwrap();
    assert_eq!((errors.len(), &of_batch[0]["position"], &of_batch[1]["position"]), (2, &json!(1), &json!(3)));
    assert!(
        of_batch[1]["message"].as_str().unwrap().contains("unknown field `tenant`"),
        "the subject says whose it is"
    );
    for call in calls {
        stack.ended(call).await;
    }
    let evidence = stack.finish().await;
    assert_eq!((evidence.count(CallState::Succeeded), evidence.count(CallState::Refused)), (2, 1));
}

/// The dispatcher commits the calls of a message, but its acknowledgement is lost, so the message is delivered again.
#[tokio::test]
async fn a_message_that_is_delivered_again_is_not_accepted_twice() {
    let servers = Servers::start().await;
    let mut stack = Stack::on(servers).await;
    stack.redeliver_after(Duration::from_secs(1)).await;
    let (proxy, url) = FaultProxy::before(stack.servers.nats_url()).await;
    stack.dispatch_through(&url).await;
    stack.work(vec![Tool::echo()]).await;
    // While the table is locked, the message is delivered but its calls cannot be committed.
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("LOCK TABLE calls IN EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let batch = br#"{"calls":[{"tool":"echo","arguments":{"n":1}},{"tool":"echo","arguments":{"n":1}}]}"#.as_slice();
    stack.queue().put_intake(Intake::Calls, batch.into(), None).await.unwrap();
    // Other statements of the dispatcher may wait for it, too; the server shows only the beginning of one.
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
                     AND wait_event_type = 'Lock' AND query LIKE '-- New calls%')";
    stack.holds("new calls wait for the lock", waits).await;
    proxy.black_hole(true);
    lock.rollback().await.unwrap();
    let committed = calls(&stack, 2).await;
    proxy.cut();
    proxy.black_hole(false);
    for call in committed {
        stack.output(call).await;
    }
    // The stream is empty at the end: the message was delivered again and acknowledged.
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 2);
}
