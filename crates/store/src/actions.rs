//! What users did: one row for each request that changes something, written before it is carried out.
//!
//! Whoever may ask can ask without end, so of each user and verb only the newest actions are kept. Those that changed nothing are
//! counted apart: they push out none that did.

use redial_api::ActionItem;
use redial_proto::{Caller, TokenId};

use crate::{StoreError, Time, connect::Store};

/// Targets of an action that are named.
const NAMED: usize = 100;
/// Actions of a user and verb that are kept: of those that changed something, and of the others.
const KEPT: i64 = 100_000;
const KEPT_WITHOUT_EFFECT: i64 = 10_000;
/// Actions beyond these that one statement deletes at most.
const TRIMMED: i64 = 5_000;

/// What a user asks to be done.
#[derive(Clone, Debug)]
pub struct NewAction<'a> {
    pub caller: &'a Caller,
    /// The way in, such as `nats`.
    pub door: &'a str,
    /// Such as `calls.redrive`.
    pub verb: &'a str,
    /// What it is about: ids or names. The first hundred are kept, and the number of all.
    pub targets: &'a [String],
}

/// Which actions to list. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct ActionFilter {
    pub tenant: Option<String>,
    pub user: Option<String>,
    pub verb: Option<String>,
    /// Asked for then or later.
    pub since: Option<Time>,
    /// Only actions before this one, to page on.
    pub before: Option<i64>,
}

impl Store {
    /// Records what a user asks for; returns the number of the row.
    pub async fn begin_action(&self, action: &NewAction<'_>) -> Result<i64, StoreError> {
        let named: Vec<String> = action.targets.iter().take(NAMED).cloned().collect();
        let count = i32::try_from(action.targets.len()).unwrap_or(i32::MAX);
        let Caller { tenant, user, role, token, .. } = action.caller;
        on_connection!(self, |db| {
            let id = sqlx::query_scalar!(
                "INSERT INTO actions (tenant, user_name, role, door, verb, targets, target_count, token)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT id FROM tokens WHERE id = $8 AND tenant = $1 AND user_name = $2))
                 RETURNING id",
                tenant.as_str(),
                user.as_str(),
                role.as_str(),
                action.door,
                action.verb,
                &named,
                count,
                token.as_ref().map(TokenId::as_str),
            );
            id.fetch_one(db).await
        })
    }

    pub async fn end_action(&self, id: i64, result: &str, changed: Option<u64>) -> Result<(), StoreError> {
        let changed = changed.map(|changed| i32::try_from(changed).unwrap_or(i32::MAX));
        on_connection!(self, |db| {
            let update =
                sqlx::query!("UPDATE actions SET result = $2, changed = $3 WHERE id = $1", id, result, changed);
            update.execute(db).await
        })
        .map(|_| ())
    }

    /// Deletes the oldest actions of a user and verb if there are too many of them.
    pub async fn trim_actions(&self, caller: &Caller, verb: &str) -> Result<(), StoreError> {
        let Caller { tenant, user, .. } = caller;
        let gone = on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/trim_actions.sql",
                tenant.as_str(),
                user.as_str(),
                verb,
                KEPT,
                KEPT_WITHOUT_EFFECT,
                TRIMMED,
            )
            .fetch_one(db)
            .await
        })?;
        let (effective, others) = (gone.effective, gone.others);
        if effective > 0 || others > 0 {
            let (tenant, user) = (tenant.as_str(), user.as_str());
            tracing::warn!(
                tenant,
                user,
                verb,
                effective,
                others,
                "Deleted the oldest actions of a user that has too many"
            );
        }
        Ok(())
    }

    /// Deletes up to `limit` actions that were asked for before `cutoff`, and of those that changed nothing before
    /// `without_effect`.
    pub async fn delete_old_actions(&self, cutoff: Time, without_effect: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let done = sqlx::query_file!("sql/delete_old_actions.sql", cutoff, without_effect, i64::from(limit))
                .execute(&mut *db)
                .await?;
            Ok(done.rows_affected())
        })
    }

    /// Lists actions, newest first.
    pub async fn actions(&self, filter: &ActionFilter, limit: u32) -> Result<Vec<ActionItem>, StoreError> {
        on_connection!(self, |db| {
            let rows = sqlx::query_file_as!(
                ActionItem,
                "sql/actions.sql",
                filter.tenant.as_deref(),
                filter.user.as_deref(),
                filter.verb.as_deref(),
                filter.since,
                filter.before,
                i64::from(limit),
            );
            rows.fetch_all(db).await
        })
    }
}
