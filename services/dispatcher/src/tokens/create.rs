//! Creates a token for a user that exists, in roles that it has. One that a token asks for may do no more, and ends no later, than that
//! one, unless the role `tokens` asks.

use std::{collections::BTreeSet, time::Duration};

use redial_access::Access;
use redial_proto::{
    ApiError, Code, Tenant, TokenCreate, TokenCreateReply, TokenId, User, UserRole,
    token::{MAX_TOKEN_LABEL, TOKEN_VALIDITY_S},
};
use redial_reread::Current;
use redial_store::{CreatedToken, NewToken, TokenRecord};

use crate::{
    actions::{Action, Done},
    asked::Asked,
    error::store_failed,
    policies,
};

pub(crate) async fn create(asked: Asked, request: TokenCreate) -> Result<Done<TokenCreateReply>, ApiError> {
    let (tenant, user) = whom(&asked, &request)?;
    let roles: BTreeSet<UserRole> = request.roles.iter().copied().collect();
    let access = asked.access().await;
    policies::check_roles(&access, &tenant, &user, &roles)?;
    let parent = parent(&asked).await?;
    let bounds = parent.as_ref().filter(|_| asked.caller.role != UserRole::Tokens);
    if let Some(parent) = bounds {
        check_within(parent, &access, &roles)?;
    }
    let new = NewToken {
        id: &request.id,
        hash: request.sha256,
        tenant: &tenant,
        user: &user,
        roles: &roles,
        label: request.label.as_deref().unwrap_or_default(),
        expiry: request.expiry,
        latest: bounds.and_then(|parent| parent.expires_at),
        by: &asked.caller,
    };
    let id = &request.id;
    let created = asked.for_tokens().create_token(&new).await.map_err(|error| store_failed(&error))?;
    let (created_at, expires_at, is_new) = match created {
        CreatedToken::Done { created_at, expires_at, is_new } => (created_at, expires_at, is_new),
        CreatedToken::IdIsTaken => {
            let message = format!("id: another token has the id {id}; allowed: a random id for each token");
            return Err(ApiError::new(Code::IdempotencyConflict, message));
        }
        CreatedToken::TooMany(most) => {
            let message = format!(
                "tenant {tenant} has {most} tokens on record, which is the most allowed; revoked and expired ones are \
                     deleted after 90 days"
            );
            return Err(ApiError::new(Code::WrongState, message));
        }
        CreatedToken::ParentEnded => return Err(parent_ended()),
    };
    let parent = parent.map(|parent| parent.id);
    if is_new {
        let by = asked.caller.user.as_str();
        let parent = parent.as_ref().map(TokenId::as_str);
        tracing::info!(token = %id, %tenant, %user, by, parent, "Created a token");
    }
    let roles = roles.into_iter().collect();
    let reply = TokenCreateReply { id: request.id, tenant, user, roles, created_at, expires_at, parent };
    Ok(Done { reply, changed: u64::from(is_new) })
}

/// Returns the token that asks; `None` if none does.
async fn parent(asked: &Asked) -> Result<Option<TokenRecord>, ApiError> {
    let Some(id) = &asked.caller.token else { return Ok(None) };
    let found = asked.for_tokens().token(id).await.map_err(|error| store_failed(&error))?;
    let (tenant, user) = (&asked.caller.tenant, &asked.caller.user);
    let is_own = |parent: &TokenRecord| parent.tenant == *tenant && parent.user == *user;
    let found = found.filter(|parent| is_own(parent) && !parent.has_ended_by(Duration::ZERO));
    found.map(Some).ok_or_else(parent_ended)
}

fn parent_ended() -> ApiError {
    ApiError::new(Code::Unauthenticated, "the token that asks has ended, or is not one of its user")
}

/// Fails for roles that the token that asks does not have, or that its user has lost.
fn check_within(parent: &TokenRecord, access: &Current<Access>, roles: &BTreeSet<UserRole>) -> Result<(), ApiError> {
    let missing: Vec<&str> = roles.difference(&parent.roles).map(|role| role.as_str()).collect();
    if !missing.is_empty() {
        let has: Vec<&str> = parent.roles.iter().map(|role| role.as_str()).collect();
        let message = format!(
            "the token that asks does not have the role {}; allowed: {}, or more with the role {}",
            missing.join(", "),
            has.join(", "),
            UserRole::Tokens
        );
        return Err(ApiError::new(Code::Forbidden, message));
    }
    policies::check_roles(access, &parent.tenant, &parent.user, roles)
}

/// Returns whom the token is to stand for.
fn whom(asked: &Asked, request: &TokenCreate) -> Result<(Tenant, User), ApiError> {
    let own = &asked.caller.tenant;
    let tenant = request.tenant.as_ref().unwrap_or(own);
    if tenant != own && !asked.is_operator() {
        let message = format!(
            "tenant {tenant} is not yours: only an admin of the tenant {} may create tokens for other tenants",
            Tenant::default()
        );
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let user = match &request.user {
        Some(user) => user.clone(),
        None if tenant == own => asked.caller.user.clone(),
        None => {
            let message = format!("user is missing; allowed: a user of tenant {tenant}");
            return Err(ApiError::new(Code::InvalidValue, message));
        }
    };
    Ok((tenant.clone(), user))
}

impl Action for TokenCreate {
    type Reply = TokenCreateReply;

    fn targets(&self) -> Vec<String> {
        vec![self.id.to_string()]
    }

    async fn check(&self, _: &Asked) -> Result<(), ApiError> {
        let wrong = |message: String| Err(ApiError::new(Code::InvalidValue, message));
        if self.roles.is_empty() {
            return wrong(format!(
                "roles is empty; allowed: a list of {}",
                UserRole::ALL.map(UserRole::as_str).join(", ")
            ));
        }
        if let Some(label) = &self.label
            && (label.chars().count() > MAX_TOKEN_LABEL || label.chars().any(char::is_control))
        {
            return wrong(format!(
                "label: up to {MAX_TOKEN_LABEL} characters are allowed, none of them a control character"
            ));
        }
        match self.expiry.seconds() {
            Some(seconds) if !TOKEN_VALIDITY_S.contains(&seconds) => {
                let (least, most) = (TOKEN_VALIDITY_S.start(), TOKEN_VALIDITY_S.end());
                wrong(format!("expiry is after {seconds} seconds; allowed: {least} to {most} seconds, or \"never\""))
            }
            _ => Ok(()),
        }
    }
}
