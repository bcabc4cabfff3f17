//! `/v1/tokens`: by which programs come over HTTP.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use redial_proto::{
    ApiToken, Tenant, TokenCreate, TokenCreateReply, TokenExpiry, TokenId, TokenRevoke, TokenRevokeReply, User,
    UserRole, subjects::Verb,
};
use redial_store::{TokenFilter, TokenLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    endpoint::Endpoint,
    extract::{Json, Name, Query},
    gateway::Api,
    page::{Page, by_bytes},
    problem::{JsonResult, Problem},
};

const TAG: &str = "tokens";
const ADMIN: &[UserRole] = &[UserRole::Admin];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/tokens", create)
            .about(TAG, "create_token", "Create a token")
            .description("The answer has the whole token, once: on record is only its hash. If the answer is lost, create another one.")
            .roles(ADMIN)
            .body::<CreateTokenBody>()
            .answer::<CreatedToken>(201, "The token."),
        Endpoint::get("/v1/tokens", list)
            .about(TAG, "list_tokens", "List tokens, newest first")
            .description("Those that ended stay in the list for 90 days. No answer has a secret or its hash.")
            .roles(ADMIN)
            .query::<TokensQuery>()
            .answer::<TokenList>(200, "Tokens of the tenant."),
        Endpoint::delete("/v1/tokens/{id}", revoke)
            .about(TAG, "revoke_token", "Revoke a token")
            .description("It is refused from then on, by a gateway that knew it already within seconds.")
            .roles(ADMIN)
            .answer::<TokenRevokeReply>(200, "It is revoked."),
    ]
}

/// A new token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateTokenBody {
    /// The tenant that it is of. Only an admin of the tenant `default` may name another one than its own.
    #[serde(default)]
    tenant: Option<Tenant>,
    /// The user that it stands for. Default: the one who asks, if the token is of the same tenant.
    #[serde(default)]
    user: Option<User>,
    /// What it may do; at least one. If there is an access file, the user must have these roles there.
    roles: Vec<UserRole>,
    /// What it is for, in up to 100 characters.
    #[serde(default)]
    label: Option<String>,
    /// How long it is valid: a minute to ten years, or until it is revoked. Default: 90 days.
    #[serde(default)]
    expiry: TokenExpiry,
}

/// A token that was created.
#[derive(Serialize, JsonSchema)]
struct CreatedToken {
    /// The whole token. It is not shown again.
    token: String,
    #[serde(flatten)]
    reply: TokenCreateReply,
}

async fn create(Api { gateway, who }: Api, Json(body): Json<CreateTokenBody>) -> Result<Response, Problem> {
    let CreateTokenBody { tenant, user, roles, label, expiry } = body;
    let token = ApiToken::of_random(&rand::random());
    let request = TokenCreate { id: token.id.clone(), sha256: token.hash(), tenant, user, roles, label, expiry };
    let reply: TokenCreateReply = gateway.ask_twice(&who, Verb::TokenCreate, &request).await?;
    let mut response = (StatusCode::CREATED, axum::Json(CreatedToken { token: token.text(), reply })).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Which tokens. Every parameter narrows.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokensQuery {
    /// Of this user.
    user: Option<String>,
    /// Only those that are valid now.
    #[serde(default)]
    only_valid: bool,
    /// Entries of a page: 1 to 1,000. Default 50.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

/// A part of the tokens.
#[derive(Serialize, JsonSchema)]
struct TokenList {
    /// Newest first.
    tokens: Vec<TokenItem>,
    /// For the next page; empty at the end.
    next_page_token: String,
}

/// What is on record of a token, without its hash.
#[derive(Serialize, JsonSchema)]
struct TokenItem {
    /// Its id.
    id: String,
    /// `valid`, `expired` or `revoked`.
    state: String,
    /// The user that it stands for.
    user: String,
    /// What it may do.
    roles: Vec<String>,
    /// What it is for; may be empty.
    label: String,
    /// When it was created.
    created_at: DateTime<Utc>,
    /// By whom: tenant, a dot, user.
    created_by: String,
    /// When it ends; `null` if it does not.
    expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    revoked_at: Option<DateTime<Utc>>,
    /// By whom.
    revoked_by: Option<String>,
    /// When a gateway last accepted it, about.
    last_used_at: Option<DateTime<Utc>>,
}

impl From<TokenLine> for TokenItem {
    fn from(line: TokenLine) -> Self {
        let TokenLine { id, state, user, roles, label, created_at, created_by, .. } = line;
        let TokenLine { expires_at, revoked_at, revoked_by, last_used_at, .. } = line;
        Self { id, state, user, roles, label, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at }
    }
}

async fn list(Api { gateway, who }: Api, Query(query): Query<TokensQuery>) -> JsonResult<TokenList> {
    let page = Page::<String>::of(&gateway, &who, "tokens", &query).await?;
    let store = gateway.store.of(&who.tenant);
    let filter = TokenFilter { user: query.user, only_valid: query.only_valid, ..TokenFilter::default() };
    let read = |before: Option<String>, limit| {
        let filter = filter.clone();
        async move {
            let before: Option<TokenId> = before.map(|id| id.parse().map_err(Problem::invalid)).transpose()?;
            let found = store.tokens(&TokenFilter { before, ..filter }, limit).await?;
            Ok(found.into_iter().map(TokenItem::from).collect())
        }
    };
    let (tokens, next) = by_bytes(&page, |token: &TokenItem| token.id.clone(), read).await?;
    Ok(axum::Json(TokenList { tokens, next_page_token: page.next(next.as_ref()) }))
}

async fn revoke(Api { gateway, who }: Api, Name(id): Name) -> JsonResult<TokenRevokeReply> {
    let id: TokenId = id.parse().map_err(Problem::invalid)?;
    Ok(axum::Json(gateway.ask_twice(&who, Verb::TokenRevoke, &TokenRevoke { id }).await?))
}
