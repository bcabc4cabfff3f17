//! What is retried, when and how often.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use redial_proto::{
    CallId, CallState, ErrorClass, RetryBudget, RetryOverride, Submission, ToolEffect, ToolSpec, WaitReason,
};
use redial_testkit::{Reply, ScriptedHttp, Stack, ToolEvent, arguments, scripted_tool, unique_path, until};
use serde_json::json;

use super::{by_hand::Hand, fixture::with_tool};

fn submission(orders: serde_json::Value, retry: RetryOverride) -> Submission {
    Submission { retry: Some(retry), ..Submission::new("tool", arguments(orders)) }
}

/// Start and end of each attempt.
async fn attempts(stack: &Stack, call: CallId) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let rows = sqlx::query_as("SELECT started_at, ended_at FROM attempts WHERE call_id = $1 ORDER BY attempt");
    rows.bind(call.0).fetch_all(stack.db()).await.unwrap()
}

#[tokio::test]
async fn the_retry_after_of_an_http_server_is_obeyed() {
    let server = ScriptedHttp::start().await;
    let busy = |seconds: &str| Reply::status(503).header("Retry-After", seconds);
    server.script("/stock", [busy("5"), busy("0"), Reply::json("{\"left\":3}")]);
    let manifest = unique_path("tools");
    let text = format!(
        "[[tool]]\nname = \"stock\"\neffect = \"read\"\nretry = {{ initial = \"1ms\", cap = \"1ms\" }}\n\
         [tool.http]\nmethod = \"GET\"\nurl = \"{}\"\n",
        server.url("/stock")
    );
    std::fs::write(&manifest, text).unwrap();
    let mut stack = Stack::start().await;
    stack.work(redial_tools::load(&manifest).unwrap()).await;
    let call = stack.call("stock", json!({})).await;
    assert_eq!(stack.output(call).await, "{\"left\":3}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let (pause, asked) = (requests[1].at - requests[0].at, TimeDelta::seconds(5));
    assert!(pause >= asked.to_std().unwrap(), "{pause:?}");
    let view = stack.get(call).await;
    let second = &view.attempts_made[1];
    assert!(second.retry_at.unwrap() - second.ended_at.unwrap() < asked, "due at once: {second:?}");
    stack.finish().await;
}

#[tokio::test]
async fn only_retryable_classes_are_retried() {
    let stack = with_tool(ToolEffect::Read).await;
    let mut calls = Vec::new();
    for class in ErrorClass::ALL {
        calls.push((class, stack.call("tool", json!({"fail": class, "times": 1})).await));
    }
    for (class, call) in calls {
        let passes =
            matches!(class, ErrorClass::Unavailable | ErrorClass::RateLimited | ErrorClass::Timeout | ErrorClass::Lost);
        let wanted = if passes { (CallState::Succeeded, 2) } else { (CallState::Failed, 1) };
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.attempts), wanted, "{class}");
        assert_eq!(view.class, (!passes).then_some(class));
    }
    // The tool fails with class `lost`, so an attempt with that class is on record although no worker died.
    stack.workers_will_die();
    stack.finish().await;
}

#[tokio::test]
async fn a_call_fails_after_its_last_attempt() {
    let stack = with_tool(ToolEffect::Idempotent).await;
    for max in [1, 3] {
        let retry = RetryOverride { max_attempts: Some(max), initial_ms: Some(1), ..RetryOverride::default() };
        let call = stack.accepted(&submission(json!({"fail": "unavailable"}), retry)).await;
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(ErrorClass::Unavailable), max));
        assert!(view.message.unwrap().ends_with(&format!("(attempt {max} of {max})")));
        assert_eq!(stack.ledger.count(ToolEvent::Effect, call), max as usize);
    }
    stack.finish().await;
}

#[tokio::test]
async fn a_call_fails_at_its_total_deadline() {
    let stack = with_tool(ToolEffect::Read).await;
    let deadline_ms = 3_000;
    let retry = RetryOverride { deadline_ms: Some(deadline_ms), max_attempts: Some(1000), ..RetryOverride::default() };
    let call = stack.accepted(&submission(json!({"fail": "unavailable"}), retry)).await;
    let view = stack.ended(call).await;
    // The deadline ends it once its next attempt would be due too late, or while that waits for its turn.
    let message = match view.class {
        Some(ErrorClass::BudgetExhausted) => "the call's total deadline passed after",
        _ => "(the next attempt would be due after the call's total deadline)",
    };
    assert!(view.message.as_ref().unwrap().contains(message), "{view:?}");
    assert_eq!(view.state, CallState::Failed);
    let after = |started: DateTime<Utc>| (started - view.submitted_at).num_milliseconds();
    let late =
        attempts(&stack, view.call).await.into_iter().filter(|a| after(a.0) > i64::try_from(deadline_ms).unwrap());
    assert_eq!(late.count(), 0, "no attempt starts after the deadline");
    // A Retry-After beyond the deadline ends the call at once.
    let order = json!({"fail": "rate_limited", "retry_after_ms": 3_600_000});
    let retry = RetryOverride { deadline_ms: Some(60_000), ..retry };
    let patient = stack.accepted(&submission(order, retry)).await;
    assert_eq!(stack.ended(patient).await.attempts, 1);
    stack.finish().await;
}

#[tokio::test]
async fn a_call_that_no_worker_claims_fails_at_its_deadline() {
    let mut stack = Stack::start().await;
    let pool = ToolSpec { pool: "nobody".to_owned(), ..ToolSpec::named("tool") };
    Hand::new(&stack, vec![pool]).await;
    let retry = RetryOverride { deadline_ms: Some(1), ..RetryOverride::default() };
    let call = stack.accepted(&submission(json!({}), retry)).await;
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(ErrorClass::BudgetExhausted), 0));
    assert!(view.message.unwrap().contains("no worker started it"));
    stack.leaves_jobs();
    stack.finish().await;
}

#[tokio::test]
async fn an_outage_of_a_tool_is_not_amplified() {
    const CALLS: usize = 300;
    const BURST: usize = 100;
    let stack = with_tool(ToolEffect::Read).await;
    let retry =
        RetryOverride { initial_ms: Some(1), cap_ms: Some(1), max_attempts: Some(1000), ..RetryOverride::default() };
    let began = Instant::now();
    let one = submission(json!({"fail": "unavailable"}), retry);
    let calls = stack.call_all(&vec![one; CALLS]).await;
    stack.ledger.reaches(ToolEvent::Started, CALLS + BURST).await;
    // After the burst all calls wait. One second of waiting shows how many probes there are.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = stack.ledger.entries().iter().filter(|entry| entry.event == ToolEvent::Started).count();
    let seconds = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few seconds")]
    let probes = seconds.ceil() as usize + 1;
    assert!(started <= CALLS + BURST + probes, "{started} attempts of {CALLS} calls in {seconds} s");
    for call in calls {
        // It may be running for a moment.
        until("the call is cancelled", async || (stack.cancel(call).await == CallState::Cancelled).then_some(())).await;
    }
    stack.finish().await;
}

/// What holds a retry is named, and the time that is shown is the one that is meant.
#[tokio::test]
async fn a_retry_that_the_budget_holds_back_tells_about_when_it_has_its_turn() {
    let mut stack = Stack::start().await;
    let budget = RetryBudget { burst: 1.0, per_success: 0.0, per_second: 0.5 };
    let tool = scripted_tool("tool", ToolEffect::Read, &stack.ledger).retry_budget(budget);
    stack.work(vec![tool]).await;
    let retry =
        RetryOverride { initial_ms: Some(1), cap_ms: Some(1), max_attempts: Some(2), ..RetryOverride::default() };
    let calls = stack.call_all(&vec![submission(json!({"fail": "unavailable"}), retry); 6]).await;
    let held = until("some retries are held back", async || {
        let (mut held, began) = (Vec::new(), Instant::now());
        for (call, view) in calls.iter().zip(join_all(calls.iter().map(|call| stack.get(*call))).await) {
            let waits = view.waits.filter(|waits| waits.reason == WaitReason::Retries && waits.failing_since.is_some());
            if let (Some(waits), CallState::Ready) = (waits, view.state) {
                assert_eq!(
                    (waits.retries_per_second, view.next_attempt_at),
                    (Some(0.5), waits.until_about),
                    "{waits:?}"
                );
                held.push((waits.retries_before.unwrap(), waits.until_about.unwrap(), *call));
            }
        }
        // If one had its turn while they were read, those that were read later have one less before them.
        let mut before: Vec<_> = held.iter().map(|one| one.0).collect();
        before.sort_unstable();
        let at_one_moment = before.windows(2).all(|pair| pair[1] == pair[0] + 1);
        // Each is told its time as seen from the moment in which it was read.
        let at_one_moment = at_one_moment && began.elapsed() < Duration::from_millis(500);
        (held.len() >= 3 && at_one_moment).then_some(held)
    })
    .await;
    for one in &held {
        stack.ended(one.2).await;
    }
    let mut turns = Vec::new();
    for (before, turn, call) in held {
        let started = attempts(&stack, call).await[1].0;
        assert!(started > turn - TimeDelta::milliseconds(1_500), "{started} is long before {turn}, after {before}");
        turns.push((before, turn, started));
    }
    turns.sort();
    assert!(turns.is_sorted_by_key(|(_, _, started)| *started), "{turns:?}");
    for pair in turns.windows(2).filter(|pair| pair[0].0 > 0) {
        let (before, seconds) = (pair[1].0 - pair[0].0, (pair[1].1 - pair[0].1).as_seconds_f64());
        #[expect(clippy::cast_precision_loss, reason = "a few retries")]
        let wanted = before as f64 * 2.0;
        assert!((seconds - wanted).abs() < 1.0, "{turns:?}");
    }
    stack.finish().await;
}

#[tokio::test]
async fn an_unsafe_tool_is_never_run_twice_on_a_guess() {
    let stack = with_tool(ToolEffect::Unsafe).await;
    let hold = json!({"hold": "/nonexistent"});
    let slow = Submission { timeout_ms: Some(100), ..Submission::new("tool", arguments(hold)) };
    let timed_out = stack.accepted(&slow).await;
    let failed = stack.call("tool", json!({"fail": "unavailable"})).await;
    let panicked = stack.call("tool", json!({"fail": "internal"})).await;
    let harmless = stack.call("tool", json!({"fail": "unavailable", "times": 2, "harmless": true})).await;
    for (call, class) in
        [(timed_out, ErrorClass::Timeout), (failed, ErrorClass::Unavailable), (panicked, ErrorClass::Internal)]
    {
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Unknown, Some(class), 1));
        assert_eq!(stack.ledger.count(ToolEvent::Started, call), 1);
        assert!(view.message.unwrap().contains("an operator must inspect it"));
    }
    assert_eq!(stack.output(harmless).await, r#"{"attempt":3}"#, "certain that nothing happened: tried again");
    let ledger = stack.ledger.clone();
    stack.finish().await;
    assert_eq!((ledger.count(ToolEvent::Stopped, timed_out), ledger.count(ToolEvent::Effect, timed_out)), (1, 0));
}

#[tokio::test]
async fn a_timeout_of_a_repeatable_tool_is_retried() {
    let stack = with_tool(ToolEffect::Idempotent).await;
    let gate = unique_path("gate");
    let slow = Submission { timeout_ms: Some(150), ..Submission::new("tool", arguments(json!({"hold": gate}))) };
    let call = stack.accepted(&slow).await;
    stack.ledger.reaches(ToolEvent::Stopped, 1).await;
    std::fs::write(&gate, "").unwrap();
    let view = stack.ended(call).await;
    assert_eq!(view.state, CallState::Succeeded);
    let attempts = attempts(&stack, call).await;
    assert!(attempts.len() >= 2 && (attempts[0].1 - attempts[0].0).num_milliseconds() >= 150);
    stack.finish().await;
}

/// More of them than one sweep takes at once, all due before the others.
#[tokio::test]
async fn due_calls_that_cannot_be_read_keep_no_other_call_waiting() {
    const MANY: usize = 600;
    let mut stack = Stack::start().await;
    Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let submission = || Submission::new("read", arguments(json!({})));
    stack.call_all(&(0..MANY).map(|_| submission()).collect::<Vec<_>>()).await;
    let unreadable =
        r#"UPDATE calls SET retry = '{"initial_ms": "soon"}', wake_at = clock_timestamp() - interval '1 s'"#;
    sqlx::query(unreadable).execute(stack.db()).await.unwrap();
    let soon = RetryOverride { deadline_ms: Some(200), ..RetryOverride::default() };
    let due = stack.accepted(&Submission { retry: Some(soon), ..submission() }).await;
    assert_eq!(stack.ended(due).await.state, CallState::Failed, "its deadline is noticed");
    let later = "SELECT count(*) FROM calls WHERE wake_at > clock_timestamp()";
    until("they are postponed", async || {
        let later: i64 = sqlx::query_scalar(later).fetch_one(stack.db()).await.unwrap();
        (later == i64::try_from(MANY).unwrap()).then_some(())
    })
    .await;
    sqlx::query("UPDATE calls SET retry = NULL WHERE wake_at IS NOT NULL").execute(stack.db()).await.unwrap();
    stack.leaves_calls();
    stack.finish().await;
}
