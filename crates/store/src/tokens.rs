//! Tokens of programs that come over HTTP. Of a secret only its hash is here, and lists leave that out, too.

use std::{collections::BTreeSet, time::Duration};

use redial_api::TokenItem;
use redial_proto::{Caller, Tenant, TokenDescendant, TokenExpiry, TokenHash, TokenId, User, UserRole};

use crate::{StoreError, Time, columns::bigint, connect::Store};

/// Tokens of a tenant that may be on record, those included that ended.
const MAX_TOKENS: i64 = 10_000;

#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    /// Made by whoever asks.
    pub id: &'a TokenId,
    /// Of its secret.
    pub hash: TokenHash,
    pub tenant: &'a Tenant,
    /// The user that it stands for.
    pub user: &'a User,
    pub roles: &'a BTreeSet<UserRole>,
    /// What it is for.
    pub label: &'a str,
    pub expiry: TokenExpiry,
    /// When it ends at the latest.
    pub latest: Option<Time>,
    /// Who asks, and with which token.
    pub by: &'a Caller,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreatedToken {
    Done {
        /// Since then.
        created_at: Time,
        expires_at: Option<Time>,
        is_new: bool,
    },
    /// Another token has this id.
    IdIsTaken,
    /// The tenant has so many tokens on record, which is the most allowed.
    TooMany(i64),
    /// The token that asks has ended.
    ParentEnded,
}

#[derive(Clone, Debug)]
pub struct RevokedToken {
    pub revoked_at: Time,
    /// How many were revoked now: with it, those that were created with it.
    pub changed: u64,
    /// Those that were created with it, or with one of those, as they are now; the oldest first.
    pub descendants: Vec<TokenDescendant>,
}

/// A token as a gateway needs it.
#[derive(Clone, Debug)]
pub struct TokenRecord {
    pub id: TokenId,
    pub tenant: Tenant,
    /// The user that it stands for.
    pub user: User,
    /// What it may do. A role that this version does not know is left out.
    pub roles: BTreeSet<UserRole>,
    /// When it ends; `None` if it does not.
    pub expires_at: Option<Time>,
    pub revoked_at: Option<Time>,
    /// When this was read, by the database's clock.
    pub read_at: Time,
    hash: TokenHash,
}

impl TokenRecord {
    pub fn has_hash(&self, hash: TokenHash) -> bool {
        self.hash == hash
    }

    /// True if it was revoked when this was read, or has expired this long after that.
    pub fn has_ended_by(&self, since_read: Duration) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|at| at <= self.read_at + since_read)
    }
}

/// Which tokens to list. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct TokenFilter {
    /// Of this tenant. Within a tenant's store it is that one, whatever this says.
    pub tenant: Option<String>,
    pub user: Option<String>,
    /// Only those that are valid now.
    pub only_valid: bool,
    /// Only tokens created before this one, to page on.
    pub before: Option<TokenId>,
}

impl Store {
    /// Creates a token. The same one again is found, and changes nothing.
    pub async fn create_token(&self, new: &NewToken<'_>) -> Result<CreatedToken, StoreError> {
        let NewToken { id, hash, tenant, user, roles, label, expiry, latest, by } = new;
        let roles: Vec<String> = roles.iter().map(ToString::to_string).collect();
        let (parent, by, seconds) = (by.token.as_ref().map(TokenId::as_str), who(by), expiry.seconds().map(bigint));
        let (id, tenant, user, hash) = (id.as_str(), tenant.as_str(), user.as_str(), hash.0.as_slice());
        let (is_new, found) = on_connection!(self, |db| {
            let insert = sqlx::query_file!(
                "sql/insert_token.sql",
                id,
                tenant,
                user,
                &roles,
                hash,
                label,
                by,
                seconds,
                MAX_TOKENS,
                parent,
                *latest
            );
            let is_new = insert.execute(&mut *db).await?.rows_affected() > 0;
            let found = sqlx::query_file!(
                "sql/created_token.sql",
                id,
                tenant,
                user,
                &roles,
                hash,
                label,
                by,
                seconds,
                parent,
                *latest
            );
            Ok((is_new, found.fetch_optional(&mut *db).await?))
        })?;
        match found {
            Some(found) if found.is_same => {
                Ok(CreatedToken::Done { created_at: found.created_at, expires_at: found.expires_at, is_new })
            }
            Some(_) => Ok(CreatedToken::IdIsTaken),
            None => match &new.by.token {
                Some(parent) if self.token(parent).await?.is_none_or(|parent| parent.has_ended_by(Duration::ZERO)) => {
                    Ok(CreatedToken::ParentEnded)
                }
                _ => Ok(CreatedToken::TooMany(MAX_TOKENS)),
            },
        }
    }

    /// Revokes a token, of one tenant if it is given, and those that were created with it, or with one of those, unless
    /// `keep_descendants`; `None` if there is no such token. Who revoked one first stays on record.
    pub async fn revoke_token(
        &self,
        id: &TokenId,
        tenant: Option<&Tenant>,
        keep_descendants: bool,
        by: &Caller,
    ) -> Result<Option<RevokedToken>, StoreError> {
        let (by, tenant) = (who(by), tenant.map(Tenant::as_str));
        let mut changed = 0;
        // A token that was being created meanwhile is found by the next look: none can be created with one that is revoked.
        loop {
            let revoked = on_connection!(self, |db| {
                let done = sqlx::query_file!("sql/revoke_tokens.sql", id.as_str(), tenant, by, keep_descendants);
                Ok(done.execute(&mut *db).await?.rows_affected())
            })?;
            changed += revoked;
            if revoked == 0 || keep_descendants {
                break;
            }
        }
        let family = on_connection!(self, |db| {
            sqlx::query_file!("sql/token_family.sql", id.as_str(), tenant).fetch_all(&mut *db).await
        })?;
        let mut found = None;
        let mut descendants = Vec::with_capacity(family.len());
        for token in family {
            let bad = |what: String| StoreError::BadData(format!("token {}: {what}", token.id));
            if token.id == id.as_str() {
                found = token.revoked_at;
            } else {
                let (id, state) = (token.id.parse().map_err(bad)?, token.state.parse().map_err(bad)?);
                descendants.push(TokenDescendant { id, state });
            }
        }
        Ok(found.map(|revoked_at| RevokedToken { revoked_at, changed, descendants }))
    }

    /// Returns a token, for a gateway that was sent it.
    pub async fn token(&self, id: &TokenId) -> Result<Option<TokenRecord>, StoreError> {
        let found = on_connection!(self, |db| {
            let found = sqlx::query!(
                r#"SELECT tenant, user_name, roles, sha256, expires_at, revoked_at, clock_timestamp() AS "read_at!"
                       FROM tokens WHERE id = $1"#,
                id.as_str()
            );
            found.fetch_optional(db).await
        })?;
        let Some(found) = found else { return Ok(None) };
        let bad = |what: String| StoreError::BadData(format!("token {id}: {what}"));
        let hash = found.sha256.try_into().map_err(|_| bad("its hash is not one".to_owned()))?;
        Ok(Some(TokenRecord {
            id: id.clone(),
            tenant: found.tenant.parse().map_err(bad)?,
            user: found.user_name.parse().map_err(bad)?,
            roles: found.roles.iter().filter_map(|role| role.parse().ok()).collect(),
            expires_at: found.expires_at,
            revoked_at: found.revoked_at,
            read_at: found.read_at,
            hash: TokenHash(hash),
        }))
    }

    /// Writes that these tokens were used now: for a gateway, which collects them for a while.
    pub async fn mark_tokens_used(&self, ids: &[TokenId]) -> Result<(), StoreError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        once_on_connection!(self, |db| sqlx::query_file!("sql/mark_tokens_used.sql", &ids).execute(db).await)
            .map(|_| ())
    }

    /// Lists tokens, newest first.
    pub async fn tokens(&self, filter: &TokenFilter, limit: u32) -> Result<Vec<TokenItem>, StoreError> {
        on_connection!(self, |db| {
            let rows = sqlx::query_file_as!(
                TokenItem,
                "sql/tokens.sql",
                filter.tenant.as_deref(),
                filter.user.as_deref(),
                filter.only_valid,
                filter.before.as_ref().map(TokenId::as_str),
                i64::from(limit)
            );
            rows.fetch_all(db).await
        })
    }

    /// Deletes up to `limit` tokens that ended before `cutoff`.
    pub async fn delete_ended_tokens(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let done =
                sqlx::query_file!("sql/delete_ended_tokens.sql", cutoff, i64::from(limit)).execute(&mut *db).await?;
            Ok(done.rows_affected())
        })
    }
}

/// Writes who asked, with the tenant: an operator is of another one than the token.
fn who(caller: &Caller) -> String {
    format!("{}.{}", caller.tenant, caller.user)
}
