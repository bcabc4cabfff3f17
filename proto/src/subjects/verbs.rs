//! What can be asked of dispatchers, and by whom.

use strum::VariantArray;

use crate::UserRole;

/// The same for users and workers.
const PIECE: &str = "payloads.piece";

/// What users ask dispatchers to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray)]
pub enum Verb {
    /// A [`crate::Submission`] or a [`crate::SubmitBatch`].
    CallSubmit,
    /// A [`crate::GetRequest`].
    CallGet,
    /// A [`crate::CancelRequest`].
    CallCancel,
    /// A [`crate::AnswerRequest`].
    CallAnswer,
    /// A [`crate::RedriveRequest`].
    CallRedrive,
    /// A [`crate::TaskSubmission`].
    TaskSubmit,
    /// A [`crate::TaskGet`].
    TaskGet,
    /// A [`crate::TaskCancel`].
    TaskCancel,
    /// A [`crate::ForgetTool`].
    ToolForget,
    /// A [`crate::Forget`] that names a conversation.
    ConversationForget,
    /// A [`crate::Forget`] that names none: everything of the tenant.
    TenantForget,
    /// A [`crate::AcceptTool`].
    ToolAccept,
    /// A [`crate::CreateWebhook`].
    WebhookCreate,
    /// A [`crate::UpdateWebhook`].
    WebhookUpdate,
    /// A [`crate::DeleteWebhook`].
    WebhookDelete,
    /// A [`crate::RotateWebhook`].
    WebhookRotate,
    /// A [`crate::TestWebhook`].
    WebhookTest,
    /// A [`crate::ListTools`].
    ToolList,
    /// A [`crate::ListAgents`].
    AgentList,
    /// A [`crate::CreateRedrive`].
    RedriveCreate,
    /// A [`crate::CancelRedrive`].
    RedriveCancel,
    /// A [`crate::TokenCreate`].
    TokenCreate,
    /// A [`crate::TokenRevoke`].
    TokenRevoke,
    /// An empty object; the answer is a [`crate::DispatcherHealth`].
    Health,
    /// A [`crate::PieceRequest`].
    Piece,
}

impl Verb {
    /// Every verb.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name, the last two tokens of its subject.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CallSubmit => "calls.submit",
            Self::CallGet => "calls.get",
            Self::CallCancel => "calls.cancel",
            Self::CallAnswer => "calls.answer",
            Self::CallRedrive => "calls.redrive",
            Self::TaskSubmit => "tasks.submit",
            Self::TaskGet => "tasks.get",
            Self::TaskCancel => "tasks.cancel",
            Self::ToolForget => "tools.forget",
            Self::ConversationForget => "conversations.forget",
            Self::TenantForget => "tenants.forget",
            Self::ToolAccept => "tools.accept",
            Self::WebhookCreate => "webhooks.create",
            Self::WebhookUpdate => "webhooks.update",
            Self::WebhookDelete => "webhooks.delete",
            Self::WebhookRotate => "webhooks.rotate",
            Self::WebhookTest => "webhooks.test",
            Self::ToolList => "tools.list",
            Self::AgentList => "agents.list",
            Self::RedriveCreate => "redrives.create",
            Self::RedriveCancel => "redrives.cancel",
            Self::TokenCreate => "tokens.create",
            Self::TokenRevoke => "tokens.revoke",
            Self::Health => "dispatchers.health",
            Self::Piece => PIECE,
        }
    }

    /// The roles that may ask for it; one is enough.
    pub const fn roles(self) -> &'static [UserRole] {
        match self {
            Self::Piece => &UserRole::ALL,
            Self::CallSubmit | Self::CallCancel | Self::CallAnswer | Self::TaskCancel => &[UserRole::Submit],
            Self::TaskSubmit => &[UserRole::Submit, UserRole::Inline],
            Self::CallGet | Self::TaskGet | Self::ToolList | Self::AgentList | Self::Health => &[UserRole::Read],
            Self::CallRedrive | Self::RedriveCreate | Self::RedriveCancel => &[UserRole::Operate],
            Self::ToolForget
            | Self::ToolAccept
            | Self::ConversationForget
            | Self::TenantForget
            | Self::WebhookCreate
            | Self::WebhookUpdate
            | Self::WebhookDelete
            | Self::WebhookRotate
            | Self::WebhookTest => &[UserRole::Admin],
            Self::TokenCreate | Self::TokenRevoke => &[UserRole::Admin, UserRole::Tokens],
        }
    }
}

/// What workers ask dispatchers to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray)]
pub enum ControlVerb {
    /// A [`crate::ClaimRequest`].
    Claim,
    /// A [`crate::Heartbeat`].
    Heartbeat,
    /// A [`crate::ReleaseRequest`].
    Release,
    /// A [`crate::Registration`].
    Register,
    /// A [`crate::PieceRequest`].
    Piece,
}

impl ControlVerb {
    /// Every verb.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name, the last part of its subject.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Heartbeat => "heartbeat",
            Self::Release => "release",
            Self::Register => "register",
            Self::Piece => PIECE,
        }
    }
}
