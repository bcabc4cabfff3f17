//! A task whose turn in its conversation has not come.

use chrono::TimeDelta;
use redial_proto::TaskState;
use redial_records::{InboxItem, TaskRecord, TaskStatus, TaskTransition};

use super::transition::nothing;

/// It is checked again after this at the earliest.
const SHORTEST_CHECK: TimeDelta = TimeDelta::seconds(1);
/// It is checked again after this at the latest.
const LONGEST_CHECK: TimeDelta = TimeDelta::seconds(30);

/// True if it may not start, and its user does not want it stopped.
pub(super) fn must_wait(record: &TaskRecord) -> bool {
    let cancelled = record.inbox.iter().any(|item| matches!(item, InboxItem::Cancel));
    record.state == TaskState::Waiting && record.start.is_none() && !cancelled
}

/// Consumes the inbox, and changes nothing else.
pub(super) fn wait(record: &TaskRecord) -> TaskTransition {
    TaskTransition { status: status(record), ..nothing(record) }
}

/// Says when to check it again. The end of the task before this one puts a start into its inbox, so the check is only
/// for a task that was submitted while that one ended, and neither saw the other: the longer it has waited, the less
/// likely.
pub(super) fn status(record: &TaskRecord) -> TaskStatus {
    let waited = record.read_at - record.submitted_at;
    TaskStatus::Waiting { wake_at: record.read_at + waited.clamp(SHORTEST_CHECK, LONGEST_CHECK) }
}
