//! What people see of calls of every kind.

use chrono::{DateTime, TimeDelta, Utc};
use redial_store::audit::{AttemptRecord, CallLine, CallRecord, LateRecord};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::timeline::render;

const CALL: Uuid = Uuid::from_u128(0x0193_6b1c_0000_7000_8000_0000_0000_0001);
const OTHER: Uuid = Uuid::from_u128(0x0193_6b1c_0000_7000_8000_0000_0000_0002);

/// So many ms after the submission.
fn at(ms: i64) -> DateTime<Utc> {
    "2026-11-20T08:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::milliseconds(ms)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn call(state: &str, attempts_made: Vec<AttemptRecord>) -> CallRecord {
    let ended = !["ready", "running", "retry_wait"].contains(&state);
    let end = attempts_made.last().and_then(|attempt| attempt.ended_at).unwrap_or(at(0));
    let line = CallLine {
        call: CALL,
        tool: "book_flight".to_owned(),
        state: state.to_owned(),
        class: None,
        message: None,
        attempts: i32::try_from(attempts_made.len()).unwrap(),
        submitted_at: at(0),
        finished_at: ended.then_some(end),
        total_ms: ended.then(|| (end - at(0)).num_milliseconds()),
        next_attempt_at: None,
        conversation: None,
        key: None,
    };
    CallRecord {
        line,
        task: None,
        tenant: "default".to_owned(),
        pool: "default".to_owned(),
        effect: "keyed".to_owned(),
        redrive_of: None,
        redriven_as: None,
        deadline_at: at(3_600_000),
        cancel_requested: false,
        publish_no: 1,
        arguments: raw(r#"{"from":"PEK","to":"SHA"}"#),
        details: None,
        repairs: None,
        attempts_made,
        late_reports: Vec::new(),
    }
}

/// An attempt that runs since then.
fn running(attempt: i32, started: i64) -> AttemptRecord {
    AttemptRecord {
        attempt,
        worker: format!("desk-{attempt}"),
        started_at: at(started),
        ended_at: None,
        duration_ms: None,
        outcome: "running".to_owned(),
        class: None,
        message: None,
        retry_at: None,
        details: None,
        output: None,
    }
}

fn failed(attempt: i32, (started, ended): (i64, i64), class: &str, message: &str) -> AttemptRecord {
    AttemptRecord {
        ended_at: Some(at(ended)),
        duration_ms: Some(ended - started - 3),
        outcome: "failed".to_owned(),
        class: Some(class.to_owned()),
        message: Some(message.to_owned()),
        ..running(attempt, started)
    }
}

fn succeeded(attempt: i32, (started, ended): (i64, i64), output: &str) -> AttemptRecord {
    AttemptRecord {
        ended_at: Some(at(ended)),
        duration_ms: Some(ended - started - 3),
        outcome: "succeeded".to_owned(),
        output: Some(raw(output)),
        ..running(attempt, started)
    }
}

/// The same with the reason of its end.
fn because(mut call: CallRecord, class: &str, message: &str) -> CallRecord {
    call.line.class = Some(class.to_owned());
    call.line.message = Some(message.to_owned());
    call
}

#[test]
fn a_retried_call_that_succeeded() {
    let lost = AttemptRecord { duration_ms: None, ..failed(1, (12, 15_020), "lost", "the worker went away") };
    let flaky = failed(2, (16_500, 16_600), "unavailable", "HTTP 503 Service Unavailable");
    let mut call = call(
        "succeeded",
        vec![
            AttemptRecord { retry_at: Some(at(16_440)), ..lost },
            AttemptRecord { retry_at: Some(at(18_600)), ..flaky },
            succeeded(
                3,
                (18_650, 83_400),
                r#"{"booking":"CA1234","seats":[],"price":{"amount":1e400000,"unit":"\u0000"}}"#,
            ),
        ],
    );
    call.line.key = Some("order-17".to_owned());
    call.line.conversation = Some("对话-9".to_owned());
    call.tenant = "acme".to_owned();
    let late = |attempt, ms, outcome: &str| LateRecord {
        attempt,
        worker: format!("desk-{attempt}"),
        received_at: at(ms),
        outcome: outcome.to_owned(),
    };
    call.late_reports = vec![late(1, 17_000, "succeeded"), late(2, 90_000, "timeout")];
    insta::assert_snapshot!(render(&call, at(100_000)));
}

#[test]
fn a_call_that_failed_with_broken_rules() {
    let mut attempt = failed(1, (12, 112), "invalid_arguments", "the tool refused\nits arguments\u{1b}[31m");
    attempt.details = Some(raw(
        r#"[{"path":"/date","rule":"format","sent":"明天","allowed":"YYYY-MM-DD","hint":"did you mean 2026-11-21?"},
            {"path":"","rule":"required","sent":null,"allowed":"to"}]"#,
    ));
    let mut call = because(call("failed", vec![attempt]), "invalid_arguments", "the tool refused its arguments");
    call.redrive_of = Some(OTHER);
    call.redriven_as = Some(OTHER);
    insta::assert_snapshot!(render(&call, at(100_000)));
}

#[test]
fn a_refused_call_never_ran() {
    let mut call = because(call("refused", vec![]), "invalid_arguments", "the arguments break the schema of the tool");
    call.details = Some(raw(r#"[{"path":"/days","rule":"type","sent":1e999,"allowed":"integer"}]"#));
    call.arguments = raw(r#"{"days":1e999}"#);
    insta::assert_snapshot!(render(&call, at(100_000)));
}

#[test]
fn an_unknown_call_says_that_somebody_has_to_look() {
    let attempt = failed(1, (12, 30_012), "timeout", "no answer within 30 s");
    let message = "no answer within 30 s; the tool is unsafe and may have done its work: somebody has to look";
    let mut call = because(call("unknown", vec![attempt]), "timeout", message);
    call.cancel_requested = true;
    insta::assert_snapshot!(render(&call, at(100_000)));
}

#[test]
fn what_a_call_waits_for() {
    let ready = render(&call("ready", vec![]), at(2_500));
    let mut waits = call("retry_wait", vec![failed(1, (12, 112), "rate_limited", "HTTP 429")]);
    waits.attempts_made[0].retry_at = Some(at(60_112));
    waits.line.next_attempt_at = Some(at(60_112));
    let (early, late) = (render(&waits, at(2_500)), render(&waits, at(70_000)));
    let mut runs = call("running", vec![running(1, 12)]);
    let running = render(&runs, at(2_500));
    runs.cancel_requested = true;
    let stopping = render(&runs, at(2_500));
    insta::assert_snapshot!([ready, early, late, running, stopping].join("\n\n----\n\n"));
}

#[test]
fn long_arguments_are_laid_out_and_huge_ones_cut() {
    let mut record = call("ready", vec![]);
    record.arguments = raw(&format!(r#"{{"passengers":["{}","{}"]}}"#, "a".repeat(50), "b".repeat(50)));
    insta::assert_snapshot!(render(&record, at(0)));
    record.arguments = raw(&format!(r#"{{"text":"{}"}}"#, "订".repeat(50_000)));
    let text = render(&record, at(0));
    assert!(text.len() < 5_000, "{} bytes", text.len());
    assert!(text.contains("… (cut)\n150011 bytes in all; --json prints them\n"), "{text}");
}

#[test]
fn json_is_the_whole_record() {
    let mut record = call("succeeded", vec![succeeded(1, (12, 112), r#"{"n":1e400000,"s":"\ud800"}"#)]);
    record.redrive_of = Some(OTHER);
    insta::assert_snapshot!(serde_json::to_string(&record).unwrap());
}
