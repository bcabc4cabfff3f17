//! JSON Schemas of every message, for workers and clients in other languages.
//!
//! They are checked in under `proto/schemas/`; a test compares them. `UPDATE_SCHEMAS=1 cargo test -p redial-proto`
//! writes them.

use schemars::{Schema, schema_for};

use crate::{
    AcceptTool, AcceptToolReply, AgentList, AgentSpec, AnswerReply, AnswerRequest, ApiError, CallView, CancelRedrive,
    CancelReply, CancelRequest, ClaimReply, ClaimRequest, ControlMessage, CreateRedrive, CreateWebhook, DeleteWebhook,
    DeletedWebhook, Delta, DispatcherHealth, Forget, ForgetReply, ForgetTool, ForgetToolReply, GetRequest, Heartbeat,
    HeartbeatReply, Job, ListAgents, ListTools, PieceReply, PieceRequest, RedriveReply, RedriveRequest, RedriveView,
    Registered, Registration, ReleaseReply, ReleaseRequest, Report, ReportBatch, RotateWebhook, Submission,
    SubmitBatch, SubmitBatchReply, SubmitResult, TaskCancel, TaskCancelReply, TaskGet, TaskNotice, TaskReport,
    TaskResult, TaskSubmission, TestWebhook, TestedWebhook, TokenCreate, TokenCreateReply, TokenRevoke,
    TokenRevokeReply, ToolList, ToolSpec, TurnReply, TurnRequest, UpdateWebhook, WebhookSecret, WebhookView,
};

/// File name (without `.json`) and schema of each message.
#[expect(clippy::too_many_lines, reason = "a list, with a line for each message")]
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("agent_spec", schema_for!(AgentSpec)),
        ("agent_list", schema_for!(AgentList)),
        ("cancel_redrive", schema_for!(CancelRedrive)),
        ("create_redrive", schema_for!(CreateRedrive)),
        ("list_agents", schema_for!(ListAgents)),
        ("list_tools", schema_for!(ListTools)),
        ("redrive_view", schema_for!(RedriveView)),
        ("tool_list", schema_for!(ToolList)),
        ("answer_reply", schema_for!(AnswerReply)),
        ("answer_request", schema_for!(AnswerRequest)),
        ("registration", schema_for!(Registration)),
        ("registered", schema_for!(Registered)),
        ("api_error", schema_for!(ApiError)),
        ("call_view", schema_for!(CallView)),
        ("cancel_reply", schema_for!(CancelReply)),
        ("cancel_request", schema_for!(CancelRequest)),
        ("claim_reply", schema_for!(ClaimReply)),
        ("claim_request", schema_for!(ClaimRequest)),
        ("delta", schema_for!(Delta)),
        ("dispatcher_health", schema_for!(DispatcherHealth)),
        ("forget", schema_for!(Forget)),
        ("forget_reply", schema_for!(ForgetReply)),
        ("accept_tool", schema_for!(AcceptTool)),
        ("accept_tool_reply", schema_for!(AcceptToolReply)),
        ("forget_tool", schema_for!(ForgetTool)),
        ("forget_tool_reply", schema_for!(ForgetToolReply)),
        ("get_request", schema_for!(GetRequest)),
        ("job", schema_for!(Job)),
        ("piece_reply", schema_for!(PieceReply)),
        ("piece_request", schema_for!(PieceRequest)),
        ("redrive_reply", schema_for!(RedriveReply)),
        ("redrive_request", schema_for!(RedriveRequest)),
        ("release_reply", schema_for!(ReleaseReply)),
        ("release_request", schema_for!(ReleaseRequest)),
        ("heartbeat_reply", schema_for!(HeartbeatReply)),
        ("heartbeat", schema_for!(Heartbeat)),
        ("report", schema_for!(Report)),
        ("report_batch", schema_for!(ReportBatch)),
        ("submission", schema_for!(Submission)),
        ("submit_batch", schema_for!(SubmitBatch)),
        ("submit_batch_reply", schema_for!(SubmitBatchReply)),
        ("submit_result", schema_for!(SubmitResult)),
        ("task_cancel", schema_for!(TaskCancel)),
        ("task_cancel_reply", schema_for!(TaskCancelReply)),
        ("task_get", schema_for!(TaskGet)),
        ("task_notice", schema_for!(TaskNotice)),
        ("task_report", schema_for!(TaskReport)),
        ("task_result", schema_for!(TaskResult)),
        ("task_submission", schema_for!(TaskSubmission)),
        ("token_create", schema_for!(TokenCreate)),
        ("token_create_reply", schema_for!(TokenCreateReply)),
        ("token_revoke", schema_for!(TokenRevoke)),
        ("token_revoke_reply", schema_for!(TokenRevokeReply)),
        ("tool_spec", schema_for!(ToolSpec)),
        ("turn_reply", schema_for!(TurnReply)),
        ("turn_request", schema_for!(TurnRequest)),
        ("control_message", schema_for!(ControlMessage)),
        ("create_webhook", schema_for!(CreateWebhook)),
        ("update_webhook", schema_for!(UpdateWebhook)),
        ("delete_webhook", schema_for!(DeleteWebhook)),
        ("deleted_webhook", schema_for!(DeletedWebhook)),
        ("rotate_webhook", schema_for!(RotateWebhook)),
        ("test_webhook", schema_for!(TestWebhook)),
        ("tested_webhook", schema_for!(TestedWebhook)),
        ("webhook_secret", schema_for!(WebhookSecret)),
        ("webhook_view", schema_for!(WebhookView)),
    ]
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, path::Path};

    #[test]
    fn checked_in_schemas_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let wanted: BTreeMap<String, String> = super::all()
            .into_iter()
            .map(|(name, schema)| (format!("{name}.json"), serde_json::to_string_pretty(&schema).unwrap() + "\n"))
            .collect();
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in &wanted {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let found: BTreeMap<String, String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
            .collect();
        assert!(found == wanted, "proto/schemas is stale: UPDATE_SCHEMAS=1 cargo test -p redial-proto");
    }
}
