//! A task's record as a person reads it: what it is, every decision with the attempts behind it, what it waits for or
//! what it gave.

use chrono::{DateTime, Utc};
use redial_proto::{CallId, TaskInput, TaskStep, TurnReply, TurnRequest, turn};
use redial_store::audit::{AttemptRecord, CallRecord};

use super::{record::Record, timeline};
use crate::{
    commands::story::{Entry, Ink, Narrator, Page, Seen, dollars, head, tokens},
    output,
};

/// The record as text of several lines, without a newline at the end.
pub(super) fn render(record: &Record, page: Page, now: DateTime<Utc>) -> String {
    let mut text = head(&record.task, page);
    text.push('\n');
    let mut narrator = Narrator::new(&record.task, page);
    narrator.learn(&record.messages);
    for step in &record.steps {
        text.push_str(&narrator.tell(step, Seen::default(), behind(record, step)));
    }
    text.push_str(&page.paragraph("now", &waiting(record, now)));
    if let Some(answer) = &record.task.answer {
        text.push_str(&format!("\nanswer\n{}", output::plain(answer)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The call behind a step: its id, what it cost, its attempts.
fn behind(record: &Record, step: &TaskStep) -> Vec<Entry> {
    let (TaskInput::TurnEnded { call, .. } | TaskInput::CallEnded { call, .. }) = &step.input else {
        return Vec::new();
    };
    let Some(call) = record.calls.iter().find(|record| CallId(record.line.call) == *call) else { return Vec::new() };
    let mut entries = vec![Entry::new("call id", Ink::Dim, call.line.call.to_string())];
    if turn::model_name(&call.line.tool).is_some() {
        entries.extend(view(call));
        entries.extend(usage(call));
    }
    entries.extend(call.attempts_made.iter().map(attempt));
    entries.extend(call.late_reports.iter().map(|late| {
        let text = format!("of attempt {} by worker {} ignored; it said: {}", late.attempt, late.worker, late.outcome);
        Entry::new("late report", Ink::Dim, text)
    }));
    entries
}

/// What of the conversation the model did not see, if anything.
fn view(call: &CallRecord) -> Option<Entry> {
    let trimmed = serde_json::from_str::<TurnRequest>(call.arguments.get()).ok()?.trimmed;
    if trimmed.shortened == 0 && trimmed.left_out == 0 {
        return None;
    }
    let text = format!(
        "cut to about {} tokens; results shortened: {}, messages left out: {}",
        trimmed.tokens, trimmed.shortened, trimmed.left_out
    );
    Some(Entry::new("view", Ink::Dim, text))
}

fn usage(call: &CallRecord) -> Option<Entry> {
    let output = call.attempts_made.iter().rev().find_map(|attempt| attempt.output.as_deref())?;
    let reply: TurnReply = serde_json::from_str(output.get()).ok()?;
    let mut parts = vec![tokens(&reply.usage)];
    parts.extend(dollars(reply.usage.cost_micros));
    parts.extend(Some(reply.model).filter(|model| !model.is_empty()).map(|model| output::plain(&model)));
    Some(Entry::new("usage", Ink::Dim, parts.join(", ")))
}

/// One attempt, without the rules that it broke: those stand in the feedback.
fn attempt(attempt: &AttemptRecord) -> Entry {
    let mut text = format!("on worker {}: {}", attempt.worker, attempt.outcome);
    if let Some(ms) = attempt.duration_ms {
        text.push_str(&format!(" after {}", output::span(ms)));
    }
    if let Some(error) = timeline::error(attempt.class.as_deref(), attempt.message.as_deref()) {
        text.push_str(&format!(": {error}"));
    }
    let ink = if attempt.class.is_some() { Ink::Yellow } else { Ink::Dim };
    Entry::new(format!("attempt {}", attempt.attempt), ink, text)
}

/// What a task that has not ended waits for.
fn waiting(record: &Record, now: DateTime<Utc>) -> Vec<Entry> {
    let waits = |call: &CallRecord| {
        let waits = timeline::waiting(call, now)?;
        Some(Entry::new("waits", Ink::Yellow, format!("{} {waits}\n(call {})", call.line.tool, call.line.call)))
    };
    let mut entries: Vec<_> = record.calls.iter().filter_map(waits).collect();
    if record.task.state == redial_proto::TaskState::Waiting {
        entries.push(Entry::new("waits", Ink::Yellow, "for earlier tasks of its conversation"));
    }
    entries
}

#[cfg(test)]
mod tests {
    use redial_proto::{AgentSpec, Language, TaskId, TaskState};
    use redial_store::{TaskCall, audit::CallLine};
    use serde_json::value::RawValue;
    use uuid::Uuid;

    use super::*;
    use crate::commands::story::sample;

    const WIDE: Page = Page { width: None, colours: false };

    fn at(ms: i64) -> DateTime<Utc> {
        sample::report().task.submitted_at + chrono::TimeDelta::milliseconds(ms)
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn attempt(attempt: i32, (started, ended): (i64, Option<i64>), class: Option<&str>) -> AttemptRecord {
        AttemptRecord {
            attempt,
            worker: format!("desk-{attempt}"),
            started_at: at(started),
            ended_at: ended.map(at),
            duration_ms: ended.map(|ended| ended - started),
            outcome: ended.map_or("running", |_| if class.is_some() { "failed" } else { "succeeded" }).to_owned(),
            class: class.map(str::to_owned),
            message: class.map(|_| "HTTP 503".to_owned()),
            retry_at: None,
            details: None,
            output: None,
        }
    }

    fn call(n: u128, (turn, call_index): (u32, u32), tool: &str, attempts_made: Vec<AttemptRecord>) -> CallRecord {
        let last = attempts_made.last().unwrap();
        let ended = last.ended_at;
        let line = CallLine {
            call: Uuid::from_u128(0x0193_6b1c_0000_7000_8000_0000_0000_0000 + n),
            tool: tool.to_owned(),
            state: last.outcome.clone(),
            class: last.class.clone(),
            message: last.message.clone(),
            attempts: i32::try_from(attempts_made.len()).unwrap(),
            submitted_at: at(4),
            finished_at: ended,
            total_ms: ended.map(|end| (end - at(4)).num_milliseconds()),
            next_attempt_at: None,
            conversation: Some("旅行-9".to_owned()),
            key: None,
        };
        CallRecord {
            line,
            task: Some(TaskCall { task: sample::report().task.task, turn, call_index }),
            tenant: "default".to_owned(),
            pool: "default".to_owned(),
            effect: "idempotent".to_owned(),
            redrive_of: None,
            redriven_as: None,
            deadline_at: at(3_600_000),
            cancel_requested: false,
            publish_no: 1,
            arguments: raw("{}"),
            repairs: None,
            details: None,
            attempts_made,
            late_reports: Vec::new(),
        }
    }

    fn asked_model() -> CallRecord {
        let mut record = call(1, (1, 0), "model-small", vec![attempt(1, (6, Some(810)), None)]);
        let request = TurnRequest {
            task: TaskId(Uuid::nil()),
            turn: 1,
            messages: Vec::new(),
            tools: Vec::new(),
            language: Language::Zh,
            max_tokens: None,
            temperature: None,
            trimmed: redial_proto::Trimmed { tokens: 900, shortened: 1, left_out: 2 },
        };
        record.arguments = raw(&serde_json::to_string(&request).unwrap());
        let usage = redial_proto::Usage { input_tokens: 1_000, output_tokens: 50, cost_micros: 1_100 };
        let reply = TurnReply { usage, model: "small-2026".to_owned(), ..TurnReply::default() };
        record.attempts_made[0].output = Some(raw(&serde_json::to_string(&reply).unwrap()));
        record
    }

    fn record() -> Record {
        let report = sample::report();
        let mut late = call(2, (1, 1), "book_flight", vec![attempt(1, (815, Some(1_230)), Some("invalid_arguments"))]);
        late.late_reports.push(redial_store::audit::LateRecord {
            attempt: 1,
            worker: "desk-9".to_owned(),
            received_at: at(1_500),
            outcome: "succeeded".to_owned(),
        });
        let retried = vec![attempt(1, (815, Some(1_090)), Some("unavailable")), attempt(2, (3_010, Some(3_390)), None)];
        Record {
            task: report.task,
            tenant: "default".to_owned(),
            language: Language::Zh,
            spec: AgentSpec::new("small"),
            steps: report.steps,
            messages: report.messages,
            earlier: Vec::new(),
            calls: vec![asked_model(), late, call(3, (1, 2), "get_weather", retried)],
        }
    }

    #[test]
    fn the_whole_path_with_the_attempts_behind_it() {
        insta::assert_snapshot!(render(&record(), WIDE, at(20_000)));
    }

    #[test]
    fn a_task_that_is_not_over_says_what_it_waits_for() {
        let mut record = record();
        record.steps.truncate(3);
        (record.task.state, record.task.code, record.task.message) = (TaskState::Running, None, None);
        (record.task.answer, record.task.finished_at) = (None, None);
        record.calls[2].attempts_made = vec![attempt(1, (815, None), None)];
        record.calls[2].line.state = "running".to_owned();
        let running = render(&record, WIDE, at(20_000));
        record.task.state = TaskState::Waiting;
        (record.steps, record.calls) = (Vec::new(), Vec::new());
        insta::assert_snapshot!(format!("{running}\n----\n{}", render(&record, WIDE, at(20_000))));
    }
}
