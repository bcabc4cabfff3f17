//! Tokens, and who asks with one.

use chrono::{DateTime, Utc};
use redial_proto::{Tenant, TokenCreateReply, TokenState, UserRole, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token that was created.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    /// The whole token. It is not shown again.
    pub token: String,
    /// What is on record of it.
    #[serde(flatten)]
    pub reply: TokenCreateReply,
}

list! {
    /// A part of the tokens.
    TokenList {
        /// Newest first.
        tokens: TokenItem
    }
}

/// What is on record of a token, without its hash.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenItem {
    /// Its id.
    pub id: String,
    /// `valid`, `expired` or `revoked`.
    #[serde(deserialize_with = "names::shown")]
    #[schemars(with = "String")]
    pub state: TokenState,
    /// The tenant that it is of; only for whoever reads those of all tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub tenant: Option<String>,
    /// The user that it stands for.
    pub user: String,
    /// What it may do.
    pub roles: Vec<String>,
    /// What it is for; may be empty.
    pub label: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// By whom: tenant, a dot, user.
    pub created_by: String,
    /// The id of the token that asked for it; `null` if none did.
    pub parent: Option<String>,
    /// When it ends; `null` if it does not.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// By whom.
    pub revoked_by: Option<String>,
    /// When a gateway last accepted it, about.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// Who asks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhoAsks {
    /// The tenant.
    pub tenant: String,
    /// The user.
    pub user: String,
    /// What the user may do.
    #[serde(deserialize_with = "names::known_all")]
    pub roles: Vec<UserRole>,
    /// How the request came in.
    pub by: By,
    /// When the session, or else the token, ends; `null` if it does not.
    pub expires_at: Option<DateTime<Utc>>,
}

impl WhoAsks {
    /// Whether the user has this role.
    pub fn may(&self, role: UserRole) -> bool {
        self.roles.contains(&role)
    }

    /// True for the tenant of the operators, to whom workers belong.
    pub fn is_operators(&self) -> bool {
        self.tenant == Tenant::default().as_str()
    }
}

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// With a token.
    Token,
    /// With the session of a browser.
    Session,
    /// Without either, on this machine's loopback.
    Loopback,
    /// In a way that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Other,
}
