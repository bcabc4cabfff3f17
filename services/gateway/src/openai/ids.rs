//! Ids of responses and items: they say where on record each is, so that any gateway finds it.

use std::{fmt, str::FromStr};

use redial_proto::{CallId, TaskId};
use uuid::Uuid;

/// A response: one segment of a task. `resp_<task>_<segment>`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseId {
    pub(crate) task: TaskId,
    /// From 0. Each turn that calls functions of the client ends a segment.
    pub(crate) segment: u32,
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}_{}", self.task.0.simple(), self.segment)
    }
}

impl FromStr for ResponseId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.strip_prefix("resp_").and_then(|rest| rest.split_once('_'));
        let id = parts.and_then(|(task, segment)| {
            let task = TaskId(simple(task)?);
            Some(Self { task, segment: segment.parse().ok()? })
        });
        id.filter(|id| id.to_string() == text).ok_or_else(|| {
            let shown = redial_proto::limits::shorten(text, 100);
            format!("{shown:?} is no id of a response; allowed: the `id` of a response, resp_…")
        })
    }
}

pub(crate) fn of_call(call: CallId) -> String {
    format!("call_{}", call.0.simple())
}

/// Returns the call of a `call_id`; `None` if it is none of Redial's.
pub(crate) fn call(text: &str) -> Option<CallId> {
    text.strip_prefix("call_").and_then(simple).map(CallId)
}

/// Makes the id of an output item: its kind, the response, its position.
pub(crate) fn of_item(kind: &str, response: ResponseId, index: usize) -> String {
    format!("{kind}_{}_{}_{index}", response.task.0.simple(), response.segment)
}

/// Returns the task of an output item; `None` if it is none of Redial's.
pub(crate) fn task_of_item(text: &str) -> Option<TaskId> {
    let rest = ["msg_", "mcp_"].iter().find_map(|kind| text.strip_prefix(kind))?;
    simple(rest.split('_').next()?).map(TaskId)
}

fn simple(text: &str) -> Option<Uuid> {
    let is_simple = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_simple { Uuid::try_parse(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = ResponseId { task: TaskId::generate(), segment: 12 };
        assert_eq!(id.to_string().parse(), Ok(id));
        let call_id = CallId::generate();
        assert_eq!(call(&of_call(call_id)), Some(call_id));
        assert_eq!(task_of_item(&of_item("msg", id, 3)), Some(id.task));
        for wrong in ["", "resp_", "resp_1_0", "msg_x", "call_1"] {
            assert!(wrong.parse::<ResponseId>().unwrap_err().contains("allowed"));
            assert_eq!((call(wrong), task_of_item(wrong)), (None, None), "{wrong}");
        }
        let padded = format!("resp_{}_01", id.task.0.simple());
        assert!(padded.parse::<ResponseId>().is_err(), "one id for one response");
    }
}
