//! A task with everything in it: parallel calls, repairs, a refusal, feedback, retries, a fallback, one call after the
//! other, a limit and a last answer.

use redial_proto::TaskReport;

pub(crate) fn report() -> TaskReport {
    serde_json::from_str(include_str!("sample.json")).unwrap()
}
