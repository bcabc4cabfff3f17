//! A task in which everything happens: parallel and sequential calls, repairs, a refusal, feedback, retries, a fallback, a
//! limit and a last answer.

use redial_proto::TaskReport;

pub(crate) fn report() -> TaskReport {
    serde_json::from_str(include_str!("sample.json")).unwrap()
}
