//! A call, and a task in which everything happens: parallel and sequential calls, repairs, a refusal, feedback, retries, a fallback, a
//! limit and a last answer.

use redial_api::CallItem;
use redial_proto::TaskReport;
use serde_json::json;

pub(crate) fn report() -> TaskReport {
    serde_json::from_str(include_str!("sample.json")).unwrap()
}

/// Returns a call that is ready.
pub(crate) fn line() -> CallItem {
    let call = json!({
        "call": "01936b1c-0000-7000-8000-000000000001", "tool": "book_flight", "state": "ready", "attempts": 0,
        "submitted_at": "2026-11-20T08:00:00Z",
    });
    serde_json::from_value(call).unwrap()
}
