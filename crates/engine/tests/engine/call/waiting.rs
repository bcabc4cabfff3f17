//! Calls that wait: for room on the stream, for a worker, for a token, and not beyond their deadline.

use chrono::TimeDelta;
use redial_engine::call::{JobState, Waiting};
use redial_proto::{CallState, ErrorClass};
use redial_records::{Backlog, CallRecord, Change};

use super::fixture::{DUE, call, change, due_while, due_with, next, now, waiting};

#[test]
fn a_call_that_waits_is_not_looked_at_before_its_deadline() {
    for backlog in Backlog::ALL {
        assert_eq!(next(&waiting(backlog, 1), &DUE), "look again in 60000 ms");
    }
}

#[test]
fn a_lost_job_goes_back_to_the_backlog_and_needs_no_second_token() {
    let published =
        |ago| CallRecord { published_at: Some(now() - TimeDelta::seconds(ago)), ..call(CallState::Ready, 1) };
    let waits = "Job waits after 1 attempts, look again in 60000 ms";
    let rows = [
        (10, JobState::Lost, waits),
        (10, JobState::Queued, "look again in 10000 ms"),
        (40, JobState::Queued, "look again in 40000 ms"),
        (599, JobState::Queued, "look again in 60000 ms"),
        (600, JobState::Queued, waits),
    ];
    for (ago, job, wanted) in rows {
        assert_eq!(next(&published(ago), &due_with(job)), wanted, "{ago} s, {job:?}");
    }
    let never = CallRecord { published_at: None, ..call(CallState::Ready, 1) };
    assert_eq!(next(&never, &due_with(JobState::Queued)), waits);
}

#[test]
fn the_message_at_a_deadline_says_what_the_call_waited_for() {
    let seen = now() - TimeDelta::hours(1);
    let last_seen = Some(seen);
    let (turn, nobody) = (Waiting::InBacklog, Waiting::ForWorker { last_seen: None });
    let gone = Waiting::ForWorker { last_seen };
    let no_worker = "no live worker had the tool \"look\" before the call's total deadline".to_owned();
    let gone_since = format!("{no_worker}; one was last seen at {}", seen.format("%Y-%m-%dT%H:%M:%SZ"));
    let not_started = "no worker started it before the call's total deadline".to_owned();
    let passed = "the call's total deadline passed after 2 attempts".to_owned();
    let down = Waiting::ForRetries { recovering_since: None };
    let rows = [
        (waiting(Backlog::Job, 0), nobody, no_worker),
        (waiting(Backlog::Retry, 2), gone, gone_since),
        (waiting(Backlog::Job, 0), turn, not_started.clone()),
        (call(CallState::Ready, 0), gone, not_started),
        (call(CallState::RetryWait, 2), gone, passed.clone()),
        (waiting(Backlog::Retry, 2), down, passed.clone()),
        (call(CallState::Ready, 2), turn, passed),
    ];
    for (call, why, wanted) in rows {
        let late = CallRecord { deadline_at: now(), ..call };
        let Some(Change::End { state, failure: Some(failure), attempt: None }) = change(&late, &due_while(why)) else {
            panic!("{late:?}, {why:?}")
        };
        let found = (state, failure.class, failure.message);
        assert_eq!(found, (CallState::Failed, ErrorClass::BudgetExhausted, wanted));
    }
}

#[test]
fn only_a_retry_that_waits_while_its_tool_recovers_gets_more_time() {
    let deadline = now() - TimeDelta::seconds(1);
    let recovering = |s| Waiting::ForRetries { recovering_since: Some(deadline + TimeDelta::seconds(s)) };
    let late = |call: CallRecord| CallRecord { deadline_at: deadline, ..call };
    let retry = || late(waiting(Backlog::Retry, 1));
    let ended = "failed/budget_exhausted";
    let rows = [
        (retry(), recovering(0), "60000 ms longer"),
        (retry(), recovering(1), ended),
        (retry(), Waiting::ForRetries { recovering_since: None }, ended),
        (retry(), recovering(-3_599), "60000 ms longer"),
        (retry(), recovering(-3_600), ended),
        (retry(), Waiting::InBacklog, ended),
        (late(waiting(Backlog::Job, 1)), recovering(0), ended),
        (late(call(CallState::RetryWait, 1)), recovering(0), ended),
        (late(call(CallState::Ready, 1)), recovering(0), ended),
    ];
    for (call, why, wanted) in rows {
        assert_eq!(next(&call, &due_while(why)), wanted, "{call:?}, {why:?}");
    }
    assert_eq!(next(&waiting(Backlog::Retry, 1), &due_while(recovering(0))), "look again in 60000 ms");
}
