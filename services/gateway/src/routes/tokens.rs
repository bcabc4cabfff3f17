//! `/v1/tokens`: by which programs come over HTTP.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use redial_api::{CreatedToken, TokenItem, TokenList};
use redial_proto::{
    ApiToken, Code, Tenant, TokenCreate, TokenCreateReply, TokenExpiry, TokenId, TokenRevoke, TokenRevokeReply, User,
    UserRole, subjects::Verb,
};
use redial_store::TokenFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    endpoint::Endpoint,
    extract::{Json, Name, Query},
    gateway::Api,
    identity::Identity,
    page::{Page, by_bytes},
    problem::{JsonResult, Problem},
};

const TAG: &str = "tokens";
/// In this order: who has the role `tokens` creates what it says.
const ROLES: &[UserRole] = &[UserRole::Tokens, UserRole::Admin];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/tokens", create)
            .about(TAG, "create_token", "Create a token")
            .description(
                "The answer has the whole token, once: on record is only its hash. If the answer is lost, create another one. It has no \
                 role that the token of the request lacks, and ends with that one at the latest, unless that one has the role `tokens`. \
                 A session does not suffice: the token is needed once more.",
            )
            .roles(ROLES)
            .body::<CreateTokenBody>()
            .answer::<CreatedToken>(201, "The token."),
        Endpoint::get("/v1/tokens", list)
            .about(TAG, "list_tokens", "List tokens, newest first")
            .description("Those that ended stay in the list for 90 days. No answer has a secret or its hash.")
            .roles(ROLES)
            .query::<TokensQuery>()
            .answer::<TokenList>(200, "Tokens of the tenant."),
        Endpoint::delete("/v1/tokens/{id}", revoke)
            .about(TAG, "revoke_token", "Revoke a token")
            .description(
                "It is refused from then on, and so is every token that was created with it, or with one of those; by a gateway that knew \
                 it already within seconds. A session does not suffice: the token of the request is needed once more.",
            )
            .roles(ROLES)
            .query::<RevokeQuery>()
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
    /// What it may do; at least one. If there is an access file, the user must have these roles there. The token of the request must
    /// have them, too, unless it has the role `tokens`.
    roles: Vec<UserRole>,
    /// What it is for, in up to 100 characters.
    #[serde(default)]
    label: Option<String>,
    /// How long it is valid: a minute to ten years, or until it is revoked. Default: 90 days.
    #[serde(default)]
    expiry: TokenExpiry,
}

async fn create(Api { gateway, who }: Api, Json(body): Json<CreateTokenBody>) -> Result<Response, Problem> {
    check_token(&who)?;
    let CreateTokenBody { tenant, user, roles, label, expiry } = body;
    let token = ApiToken::of_random(&rand::random());
    let request = TokenCreate { id: token.id.clone(), sha256: token.hash(), tenant, user, roles, label, expiry };
    let caller = who.in_role(ROLES)?;
    let reply: TokenCreateReply = gateway.ask_twice_as(&caller, Verb::TokenCreate, &request, None).await?;
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

async fn list(Api { gateway, who }: Api, Query(query): Query<TokensQuery>) -> JsonResult<TokenList> {
    let page = Page::<String>::of(&gateway, &who, "tokens", &query).await?;
    let store = gateway.store.of(&who.tenant);
    let filter = TokenFilter { user: query.user, only_valid: query.only_valid, ..TokenFilter::default() };
    let read = |before: Option<String>, limit| {
        let filter = filter.clone();
        async move {
            let before: Option<TokenId> = before.map(|id| id.parse().map_err(Problem::invalid)).transpose()?;
            Ok(store.tokens(&TokenFilter { before, ..filter }, limit).await?)
        }
    };
    let (tokens, next) = by_bytes(&page, |token: &TokenItem| token.id.clone(), read).await?;
    Ok(axum::Json(TokenList { tokens, next_page_token: page.next(next.as_ref()) }))
}

/// What to revoke with a token.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevokeQuery {
    /// Leave the tokens valid that were created with it.
    #[serde(default)]
    keep_descendants: bool,
}

async fn revoke(
    Api { gateway, who }: Api,
    Name(id): Name,
    Query(RevokeQuery { keep_descendants }): Query<RevokeQuery>,
) -> JsonResult<TokenRevokeReply> {
    check_token(&who)?;
    let request = TokenRevoke { id: id.parse().map_err(Problem::invalid)?, keep_descendants };
    Ok(axum::Json(gateway.ask_twice(&who, Verb::TokenRevoke, &request).await?))
}

/// Fails for a session: whoever took over a browser for a moment must not leave with a token that lasts.
fn check_token(who: &Identity) -> Result<(), Problem> {
    if who.session.is_none() {
        return Ok(());
    }
    let message = "a session creates and revokes no tokens; allowed: Authorization: Bearer with the token, once more";
    Err(Problem::new(Code::Forbidden, message))
}
