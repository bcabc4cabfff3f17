//! A response as OpenAI's clients read it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use redial_proto::{TaskCode, TaskView};
use serde_json::{Value, json};

use super::{OWN_NOTE, Record, ResponseId};

impl Record {
    pub(crate) fn output(&self) -> &[Value] {
        &self.output
    }

    pub(crate) const fn status(&self) -> &'static str {
        self.status
    }

    pub(crate) const fn task(&self) -> &TaskView {
        &self.task
    }

    pub(crate) const fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    pub(crate) fn response(&self) -> Value {
        let task = &self.task;
        let status = self.status;
        let notes = task.metadata.iter().filter(|(key, _)| !key.starts_with(OWN_NOTE));
        let before = match self.id.segment.checked_sub(1) {
            Some(segment) => Some(ResponseId { segment, ..self.id }.to_string()),
            None => self.own_note("previous_response_id").cloned(),
        };
        let error = (status == "failed")
            .then(|| json!({"code": "server_error", "message": task.message.as_deref().unwrap_or("the task failed")}));
        let reason = match task.code {
            Some(TaskCode::AnswerCutOff) => "max_output_tokens",
            Some(code) => code.as_str(),
            None => "unknown",
        };
        json!({
            "id": self.id.to_string(), "object": "response", "created_at": self.created_at.timestamp(),
            "status": status, "background": self.is_background(), "error": error,
            "incomplete_details": (status == "incomplete").then(|| json!({"reason": reason})),
            "instructions": null, "max_output_tokens": null, "model": task.agent, "output": self.output,
            "parallel_tool_calls": true, "previous_response_id": before, "reasoning": {"effort": null, "summary": null},
            "store": true, "temperature": null, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
            "top_p": null, "truncation": "disabled", "usage": self.usage(), "user": null,
            "metadata": notes.collect::<BTreeMap<_, _>>(), "conversation": {"id": task.conversation},
        })
    }

    /// Returns what the whole task cost; `None` unless this response ends it, so that it is counted once.
    pub(crate) fn usage(&self) -> Option<Value> {
        // Only what is on record at that step: each gateway writes the same.
        let is_end = !self.closed && !matches!(self.status, "queued" | "in_progress");
        let (read, written) = (self.task.usage.input_tokens, self.task.usage.output_tokens);
        is_end.then(|| {
            json!({
                "input_tokens": read, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": read + written,
            })
        })
    }

    pub(super) fn is_background(&self) -> bool {
        self.own_note("background").is_some()
    }

    fn own_note(&self, name: &str) -> Option<&String> {
        self.task.metadata.get(&format!("{OWN_NOTE}{name}"))
    }
}
