//! Revokes a token.

use redial_proto::{ApiError, Code, TokenRevoke, TokenRevokeReply};

use crate::{actions::Done, asked::Asked, error::store_failed};

pub(crate) async fn revoke(asked: Asked, request: TokenRevoke) -> Result<Done<TokenRevokeReply>, ApiError> {
    let (id, caller) = (&request.id, &asked.caller);
    let tenant = (!asked.is_operator()).then_some(&caller.tenant);
    let revoked = asked.for_tokens().revoke_token(id, tenant, caller).await.map_err(|error| store_failed(&error))?;
    let Some((revoked_at, changed)) = revoked else {
        return Err(ApiError::new(Code::TokenNotFound, format!("no token {id} is on record")));
    };
    if changed {
        tracing::info!(token = %id, by = caller.user.as_str(), "Revoked a token");
    }
    Ok(Done { reply: TokenRevokeReply { revoked_at, changed }, changed: u64::from(changed) })
}
