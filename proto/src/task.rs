//! Tasks: requests that a model works on with tools.

mod messages;
mod state;
mod steps;

pub use messages::{
    AgentRef, TaskCancel, TaskCancelReply, TaskGet, TaskNotice, TaskReport, TaskResult, TaskSubmission, TaskView,
};
pub use state::{TaskCode, TaskState};
pub use steps::{Nudged, TaskDecision, TaskInput, TaskStep};
