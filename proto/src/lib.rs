//! The contract between Redial's processes, and between Redial and its users.
//!
//! Plain data and its checks: nothing here does I/O, reads a clock or decides anything. Every message is JSON, so that
//! a worker or a client can be written in any language; `proto/schemas/` holds the JSON Schemas of these types.
//!
//! Durations are milliseconds in fields that end in `_ms`; points in time are RFC 3339 strings in UTC.

#![warn(missing_docs)]

pub mod agent;
pub mod api;
pub mod call;
pub mod contract;
#[cfg(test)]
mod damaged;
pub mod duration;
pub mod error;
pub mod estimate;
mod fields;
pub mod forget;
pub mod function;
mod health;
pub mod help;
pub mod identity;
pub mod ids;
pub mod json_text;
pub mod limits;
pub mod lists;
pub mod message;
pub mod names;
pub mod outcome;
pub mod payload;
pub mod queue;
pub mod redrive;
pub mod repair;
pub mod retry_after;
pub mod schemas;
pub mod subjects;
pub mod task;
pub mod token;
mod token_id;
pub mod tolerant;
pub mod tool;
pub mod traceparent;
pub mod turn;
pub mod usage;
pub mod webhook;

pub use agent::{AgentSpec, Budgets, CutOff, Policy};
pub use api::{
    AcceptTool, AcceptToolReply, AttemptView, CallView, CancelReply, CancelRequest, ForgetTool, ForgetToolReply,
    GetRequest, Submission, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus, WaitReason, Waiting,
};
pub use call::CallState;
pub use contract::CONTRACT;
pub use error::{ApiError, Code};
pub use forget::{Forget, ForgetCounts, ForgetReply, OpenWork};
pub use function::{AnswerReply, AnswerRequest, FunctionError, FunctionSpec};
pub use health::DispatcherHealth;
pub use help::{Advice, Help, Limited, OverLimit};
pub use identity::{ANY_POOL, Caller, Door, Tenant, User, UserRole, WorkerCaller, WorkerIdentity, check_token};
pub use ids::{CallId, ClaimId, RedriveId, TaskId, WorkerId};
pub use lists::{AgentList, AgentView, ListAgents, ListTools, ToolList, ToolView};
pub use message::{Message, MessageCall, Role, StoredMessage};
pub use outcome::{ErrorClass, Failure, FieldError, Outcome};
pub use payload::{Payload, PieceReply, PieceRequest};
pub use queue::{
    ClaimJob, ClaimReply, ClaimRequest, ControlMessage, Grant, GrantRef, Heartbeat, HeartbeatReply, Job, JobRef, Pack,
    PackedJob, Registered, Registration, ReleaseReply, ReleaseRequest, Report, ReportBatch, ReturnedPack,
};
pub use redrive::{
    CancelRedrive, CreateRedrive, RedriveFilter, RedriveReply, RedriveRequest, RedriveState, RedriveView,
};
pub use repair::{Repair, RepairKind};
pub use task::{
    AgentRef, Nudged, TaskCancel, TaskCancelReply, TaskCode, TaskDecision, TaskGet, TaskInput, TaskNotice, TaskReport,
    TaskResult, TaskState, TaskStep, TaskSubmission, TaskView,
};
pub use token::{
    ApiToken, TokenCreate, TokenCreateReply, TokenDescendant, TokenExpiry, TokenHash, TokenRevoke, TokenRevokeReply,
    TokenState,
};
pub use token_id::TokenId;
pub use tool::{RetryBudget, RetryOverride, RetryPolicy, ToolEffect, ToolSpec};
pub use turn::{
    Delta, DeltaPosition, Finish, Language, ReplyCall, ToolOffer, Trimmed, TurnReply, TurnRequest, WholeText,
};
pub use usage::{TurnUsage, Usage};
pub use webhook::{
    CreateWebhook, DeleteWebhook, DeletedWebhook, DisabledReason, RotateWebhook, TestWebhook, TestedWebhook,
    UpdateWebhook, WebhookEvent, WebhookSecret, WebhookState, WebhookView,
};
