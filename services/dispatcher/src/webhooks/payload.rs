//! What is posted about an end: the view that a user gets who asks for it, without what would be too much.

use redial_proto::{CallView, Language, TaskId, TaskView, limits::shorten};
use redial_store::{StoreError, audit::CallAudit};
use redial_views::call_view;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The most bytes of the data of an event: a delivery's arguments hold it, with what else they need.
const MAX_DATA: usize = 192 * 1024;
/// So many bytes are left of a text of a task that is cut; as JSON each may take six.
const TEXT: usize = 12 * 1024;

/// Leaves a field out, or shortens it.
type Shorten<T> = fn(&mut T);

#[derive(Serialize)]
struct CallData {
    #[serde(flatten)]
    view: CallView,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Serialize)]
struct TaskData {
    #[serde(flatten)]
    view: TaskView,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Serialize)]
struct Rest {
    link: String,
    /// The fields that were left out or shortened, because they were too long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<&'static str>,
}

pub(super) fn of_call(record: CallAudit) -> Result<Box<RawValue>, StoreError> {
    let id = record.line.call;
    let (key, conversation) = (record.line.key.clone(), record.line.conversation.clone());
    let task = record.task.map(|task| task.task);
    let view = call_view(record, Language::default());
    let rest = Rest { link: format!("/v1/calls/{id}"), cut: Vec::new() };
    let mut data = CallData { view, key, conversation, task, rest };
    let cuts: [(&str, Shorten<CallView>); 6] = [
        ("output", |view| view.output = None),
        ("feedback", |view| view.feedback = None),
        ("repairs", |view| view.repairs.clear()),
        ("undeclared", |view| view.undeclared.clear()),
        ("details", |view| view.details.clear()),
        ("attempts_made", |view| view.attempts_made.clear()),
    ];
    for (field, cut) in cuts {
        let text = raw(&data)?;
        if text.get().len() <= MAX_DATA {
            return Ok(text);
        }
        cut(&mut data.view);
        data.rest.cut.push(field);
    }
    raw(&data)
}

pub(super) fn of_task(view: TaskView) -> Result<Box<RawValue>, StoreError> {
    let link = format!("/v1/tasks/{}", view.task);
    let rest = Rest { link, cut: Vec::new() };
    let mut data = TaskData { view, rest };
    let cuts: [(&str, Shorten<TaskView>); 3] = [
        ("answer", |view| view.answer = view.answer.as_deref().map(|text| shorten(text, TEXT))),
        ("input", |view| view.input = shorten(&view.input, TEXT)),
        ("message", |view| view.message = None),
    ];
    for (field, cut) in cuts {
        let text = raw(&data)?;
        if text.get().len() <= MAX_DATA {
            return Ok(text);
        }
        cut(&mut data.view);
        data.rest.cut.push(field);
    }
    raw(&data)
}

fn raw(data: &impl Serialize) -> Result<Box<RawValue>, StoreError> {
    to_raw_value(data).map_err(|error| StoreError::BadData(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn task(input: &str, answer: &str) -> TaskView {
        let view = json!({
            "task": Uuid::from_u128(1), "conversation": "c", "model": "m", "input": input, "state": "succeeded",
            "answer": answer, "turns": 1, "tool_calls": 0, "corrections": 0, "usage": {}, "submitted_at": "2026-11-24T00:00:00Z",
        });
        serde_json::from_value(view).unwrap()
    }

    fn data(of: TaskView) -> Value {
        serde_json::from_str(of_task(of).unwrap().get()).unwrap()
    }

    #[test]
    fn what_is_too_long_is_cut_and_named() {
        let short = data(task("question", "answer"));
        assert_eq!((&short["answer"], &short["cut"]), (&json!("answer"), &Value::Null));
        assert_eq!(short["link"], "/v1/tasks/00000000-0000-0000-0000-000000000001");
        let long = data(task("question", &"x".repeat(300_000)));
        assert_eq!((&long["input"], &long["cut"]), (&json!("question"), &json!(["answer"])));
        let both = data(task(&"\u{1}".repeat(120_000), &"\u{1}".repeat(120_000)));
        assert_eq!(both["cut"], json!(["answer", "input"]));
        assert!(serde_json::to_string(&both).unwrap().len() <= MAX_DATA * 2);
    }
}
