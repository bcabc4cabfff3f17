//! Revokes a token, and what was created with it.

use redial_proto::{ApiError, Code, TokenRevoke, TokenRevokeReply};
use redial_store::RevokedToken;

use crate::{actions::Done, asked::Asked, error::store_failed};

pub(crate) async fn revoke(asked: Asked, request: TokenRevoke) -> Result<Done<TokenRevokeReply>, ApiError> {
    let (TokenRevoke { id, keep_descendants }, caller) = (&request, &asked.caller);
    let tenant = (!asked.is_operator()).then_some(&caller.tenant);
    let revoked = asked.for_tokens().revoke_token(id, tenant, *keep_descendants, caller).await;
    let Some(RevokedToken { revoked_at, changed, descendants }) = revoked.map_err(|error| store_failed(&error))? else {
        return Err(ApiError::new(Code::TokenNotFound, format!("no token {id} is on record")));
    };
    if changed > 0 {
        let descendants = descendants.len();
        tracing::info!(token = %id, revoked = changed, descendants, by = caller.user.as_str(), "Revoked a token");
    }
    Ok(Done { reply: TokenRevokeReply { revoked_at, changed: changed > 0, descendants }, changed })
}
