//! The text of calls and tasks of every kind.

use chrono::TimeDelta;
use redial_api::LateReport;
use redial_proto::{AgentSpec, Language, TurnReply, Waiting};
use redial_store::{TaskCall, audit::AttemptRecord};
use serde::Deserialize as _;
use serde_json::{Value, json, value::RawValue};
use uuid::Uuid;

use super::*;
use crate::timeline::sample;

const CALL: Uuid = Uuid::from_u128(0x0193_6b1c_0000_7000_8000_0000_0000_0001);
const OTHER: Uuid = Uuid::from_u128(0x0193_6b1c_0000_7000_8000_0000_0000_0002);

/// Returns a time in ms after the submission.
fn at(ms: i64) -> DateTime<Utc> {
    "2026-11-20T08:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::milliseconds(ms)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn call(state: &str, attempts_made: Vec<AttemptRecord>) -> CallAudit {
    let ended = !["ready", "running", "retry_wait"].contains(&state);
    let end = attempts_made.last().and_then(|attempt| attempt.ended_at).unwrap_or(at(0));
    let record = json!({
        "call": CALL, "tool": "book_flight", "state": state, "attempts": attempts_made.len(), "submitted_at": at(0),
        "finished_at": ended.then_some(end), "total_ms": ended.then(|| (end - at(0)).num_milliseconds()),
        "tenant": "default", "pool": "default", "effect": "keyed", "deadline_at": at(3_600_000), "publish_no": 1,
        "cancel_requested": false, "arguments": {"from": "PEK", "to": "SHA"}, "attempts_made": [], "late_reports": [],
    });
    CallAudit { attempts_made, ..serde_json::from_str(&record.to_string()).unwrap() }
}

fn text(call: &CallAudit, now: DateTime<Utc>) -> String {
    call_text(call, Page::test(None, false), now)
}

fn running(attempt: i32, started: i64) -> AttemptRecord {
    let worker = format!("host-{attempt}");
    let record = json!({"attempt": attempt, "worker": worker, "started_at": at(started), "outcome": "running"});
    serde_json::from_str(&record.to_string()).unwrap()
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

fn succeeded(attempt: i32, times: (i64, i64), output: &str) -> AttemptRecord {
    let (outcome, output) = ("succeeded".to_owned(), Some(raw(output)));
    AttemptRecord { outcome, output, class: None, message: None, ..failed(attempt, times, "", "") }
}

fn late(attempt: i32, ms: i64, outcome: &str) -> LateReport {
    let (worker, outcome) = (format!("host-{attempt}"), outcome.to_owned());
    LateReport { attempt, worker, received_at: at(ms), outcome }
}

/// Adds the reason for its end.
fn ended(mut call: CallAudit, class: &str, message: &str) -> CallAudit {
    call.line.class = Some(class.parse().unwrap());
    call.line.message = Some(message.to_owned());
    call
}

#[test]
fn a_retried_call_that_succeeded() {
    let lost = AttemptRecord { duration_ms: None, ..failed(1, (12, 15_020), "lost", "the worker was lost") };
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
    call.submitted_by = Some("alice".to_owned());
    call.late_reports = vec![late(1, 17_000, "succeeded"), late(2, 90_000, "timeout")];
    insta::assert_snapshot!(text(&call, at(100_000)));
}

#[test]
fn a_call_that_failed_with_field_errors() {
    let mut attempt = failed(1, (12, 112), "invalid_arguments", "the tool refused\nits arguments\u{1b}[31m");
    attempt.details = Some(raw(
        r#"[{"path":"/date","rule":"format","sent":"明天","allowed":"YYYY-MM-DD","hint":"did you mean 2026-11-21?"},
            {"path":"","rule":"required","sent":null,"allowed":"to"}]"#,
    ));
    let mut call = ended(call("failed", vec![attempt]), "invalid_arguments", "the tool refused its arguments");
    call.redrive_of = Some(OTHER);
    call.line.redriven_as = Some(CallId(OTHER));
    insta::assert_snapshot!(text(&call, at(100_000)));
}

#[test]
fn a_call_names_the_task_that_asked_for_it() {
    for (call_index, what) in [(0, "the request to the model"), (1, "call 1")] {
        let task = Some(TaskCall { task: TaskId(OTHER), turn: 2, call_index });
        let shown = text(&CallAudit { task, ..call("ready", vec![]) }, at(10));
        assert!(shown.contains(&format!("\ntask          {OTHER} (turn 2, {what})\n")), "{shown}");
    }
}

#[test]
fn a_call_that_was_refused_and_an_unknown_one() {
    let mut refused = ended(call("refused", vec![]), "invalid_arguments", "the arguments break the schema of the tool");
    refused.details = Some(raw(r#"[{"path":"/days","rule":"type","sent":1e999,"allowed":"integer"}]"#));
    refused.arguments = raw(r#"{"days":1e999}"#);
    let attempt = failed(1, (12, 30_012), "timeout", "no answer within 30 s");
    let message = "no answer within 30 s; the tool is unsafe and may have done its work: an operator must inspect it";
    let mut unknown = ended(call("unknown", vec![attempt]), "timeout", message);
    unknown.cancel_requested = true;
    insta::assert_snapshot!([refused, unknown].map(|call| text(&call, at(100_000))).join("\n\n----\n\n"));
}

#[test]
fn what_a_call_waits_for() {
    let ready = text(&call("ready", vec![]), at(2_500));
    let mut waits = call("retry_wait", vec![failed(1, (12, 112), "rate_limited", "HTTP 429")]);
    waits.attempts_made[0].retry_at = Some(at(60_112));
    waits.line.next_attempt_at = Some(at(60_112));
    let (early, late) = (text(&waits, at(2_500)), text(&waits, at(70_000)));
    let mut runs = call("running", vec![running(1, 12)]);
    let running = text(&runs, at(2_500));
    runs.cancel_requested = true;
    let stopping = text(&runs, at(2_500));
    runs.cancel_requested = false;
    runs.attempts_made[0].unheard_since = Some(at(15_012));
    let silent = text(&runs, at(20_000));
    insta::assert_snapshot!([ready, early, late, running, stopping, silent].join("\n\n----\n\n"));
}

#[test]
fn what_holds_a_retry_back() {
    let due = AttemptRecord { retry_at: Some(at(283)), ..failed(1, (12, 112), "unavailable", "HTTP 503") };
    let fails = json!({
        "reason": "retries", "since": at(283), "failing_since": at(-200_000), "retries_per_second": 1.0,
        "retries_before": 93, "until_about": at(94_112),
    });
    let recovers =
        json!({"reason": "retries", "since": at(283), "recovering_since": at(1_000), "retries_per_second": 0.2});
    let held = |state, waits: &Value, now| {
        let waits = Some(Waiting::deserialize(waits).unwrap());
        let mut held = CallAudit { waits, ..call(state, vec![due.clone()]) };
        held.line.next_attempt_at = Some(at(94_112));
        text(&held, at(now))
    };
    let started = call("succeeded", vec![due.clone(), succeeded(2, (94_500, 94_600), "{}")]);
    let shown = [
        held("retry_wait", &fails, 150),
        held("ready", &fails, 2_500),
        held("ready", &recovers, 2_500),
        text(&started, at(100_000)),
    ];
    insta::assert_snapshot!(shown.join("\n\n----\n\n"));
}

#[test]
fn long_values_are_laid_out_and_huge_ones_cut() {
    let asks = |arguments: &str| text(&CallAudit { arguments: raw(arguments), ..call("ready", vec![]) }, at(0));
    insta::assert_snapshot!(asks(&format!(r#"{{"passengers":["{}","{}"]}}"#, "a".repeat(50), "b".repeat(50))));
    let huge = asks(&format!(r#"{{"text":"{}"}}"#, "订".repeat(50_000)));
    assert!(huge.contains("… (cut)\n150011 bytes in all; --json prints them\n") && huge.len() < 5_000, "{huge}");
    // Results are larger.
    let answers = |output: &str| text(&call("succeeded", vec![succeeded(1, (12, 112), output)]), at(200));
    let large = answers(&format!("[{}0]", "17,".repeat(20_000)));
    assert!(large.ends_with("  17,\n  0\n]") && large.len() > 80_000, "{} bytes", large.len());
    let huge = answers(&format!("[{}0]", "17,".repeat(5_000_000)));
    assert!(huge.ends_with("… (cut)\n15000003 bytes in all; --json prints them") && huge.len() < 5_000, "{huge}");
}

/// Makes a call of the sample task, which was submitted 4 ms after the task.
fn call_in_task(n: u128, call_index: u32, tool: &str, attempts_made: Vec<AttemptRecord>) -> CallAudit {
    let last = attempts_made.last().unwrap();
    let (class, message) = (last.class.as_deref().map(|class| class.parse().unwrap()), last.message.clone());
    let mut record = call(&last.outcome.clone(), attempts_made);
    record.line.call = CallId(Uuid::from_u128(CALL.as_u128() - 1 + n));
    record.line.tool = tool.to_owned();
    (record.line.class, record.line.message) = (class, message);
    record.task = Some(TaskCall { task: sample::report().task.task, turn: 1, call_index });
    record
}

fn model_call() -> CallAudit {
    let reply = json!({
        "model": "small-2026", "usage": {"input_tokens": 1_000, "output_tokens": 50, "cost_micros": 1_100},
    });
    let mut record = call_in_task(1, 0, "model-small", vec![succeeded(1, (6, 813), &reply.to_string())]);
    let request = json!({
        "task": Uuid::nil(), "turn": 1, "messages": [], "tools": [], "language": "zh",
        "trimmed": {"tokens": 900, "shortened": 1, "left_out": 2},
    });
    record.arguments = raw(&request.to_string());
    record
}

fn task() -> TaskAudit {
    let report = sample::report();
    let mut late = call_in_task(2, 1, "book_flight", vec![failed(1, (815, 1_233), "invalid_arguments", "HTTP 422")]);
    late.late_reports.push(LateReport { worker: "host-9".to_owned(), ..self::late(1, 1_500, "succeeded") });
    let retried = vec![failed(1, (815, 1_093), "unavailable", "HTTP 503"), succeeded(2, (3_010, 3_393), "{}")];
    TaskAudit {
        task: report.task,
        tenant: "default".to_owned(),
        language: Language::Zh,
        spec: AgentSpec::new("small"),
        steps: report.steps,
        messages: report.messages,
        earlier: Vec::new(),
        calls: vec![model_call(), late, call_in_task(3, 2, "get_weather", retried)],
    }
}

#[test]
fn a_task_with_the_attempts_of_its_calls() {
    insta::assert_snapshot!(task_text(&task(), Page::test(None, false), at(20_000)));
}

#[test]
fn what_is_cut_off_and_what_no_schema_declares_is_told() {
    let mut record = task();
    record.task.code = Some(TaskCode::AnswerCutOff);
    record.task.answer = Some("The trips that can be booked".to_owned());
    let reply = TurnReply { finish: redial_proto::Finish::Length, ..TurnReply::default() };
    record.calls[0].attempts_made = vec![succeeded(1, (6, 813), &serde_json::to_string(&reply).unwrap())];
    let shown = task_text(&record, Page::test(None, false), at(20_000));
    assert!(shown.contains("the reply ended at the model's limit of tokens; its end is missing"), "{shown}");
    assert!(shown.ends_with("\nanswer (cut off)\nThe trips that can be booked"), "{shown}");
    let mut record = call("ready", vec![]);
    record.undeclared = Some(raw(r#"["/seats/0/color"]"#));
    assert!(text(&record, at(0)).contains("/seats/0/color is not in the schema"));
}

#[test]
fn what_a_task_waits_for() {
    let page = Page::test(None, false);
    let mut record = task();
    record.steps.truncate(3);
    (record.task.state, record.task.code, record.task.message) = (TaskState::Running, None, None);
    (record.task.answer, record.task.finished_at) = (None, None);
    record.calls[2] = call_in_task(3, 2, "get_weather", vec![running(1, 815)]);
    let running = task_text(&record, page, at(20_000));
    record.task.state = TaskState::Waiting;
    (record.steps, record.calls) = (Vec::new(), Vec::new());
    insta::assert_snapshot!(format!("{running}\n----\n{}", task_text(&record, page, at(20_000))));
}
