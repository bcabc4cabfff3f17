//! Tombstones: how far erasures are, and which there were.

use redial_proto::{Caller, Code, ForgetCounts, TokenId};
use uuid::Uuid;

use super::scope::Scope;
use crate::{
    StoreError, Time,
    columns::unsigned,
    connect::{Store, Transaction},
};

/// What an erasure does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It makes sure that nothing is open. Nothing is deleted yet.
    Open,
    /// It deletes dead letters.
    Letters,
    /// It deletes tasks with their messages and steps.
    Tasks,
    /// It deletes calls with their attempts and late reports.
    Calls,
    /// It deletes statistics of a tenant.
    Statistics,
    /// It deletes dead letters that named calls which were deleted meanwhile.
    LastLetters,
    /// Everything is erased.
    Done,
}

impl Phase {
    pub(super) const ALL: [Self; 7] =
        [Self::Open, Self::Letters, Self::Tasks, Self::Calls, Self::Statistics, Self::LastLetters, Self::Done];

    /// As the column holds it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Letters => "letters",
            Self::Tasks => "tasks",
            Self::Calls => "calls",
            Self::Statistics => "statistics",
            Self::LastLetters => "last_letters",
            Self::Done => "done",
        }
    }

    fn parse(text: &str) -> Result<Self, StoreError> {
        let found = Self::ALL.into_iter().find(|phase| phase.as_str() == text);
        found.ok_or_else(|| StoreError::BadData(format!("a tombstone in phase {text:?}")))
    }
}

/// An erasure to begin.
#[derive(Clone, Debug)]
pub struct NewErasure<'a> {
    /// Made by whoever asks.
    pub id: Uuid,
    /// Who asks. The erasure is within their tenant.
    pub caller: &'a Caller,
    /// The way in, such as `nats`.
    pub door: &'a str,
    /// What was asked for, such as `tenants.forget`.
    pub verb: &'a str,
    /// The conversation; `None`: everything of the tenant.
    pub conversation: Option<&'a str>,
    /// Cancel what is open.
    pub cancels: bool,
}

/// What became of an erasure that was to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It, or the one of the same scope that is to be finished first.
    Erasure(Box<Tombstone>),
    /// Another one of the same scope was finished at this moment: begin it once more.
    OtherEnded,
    /// Its id is that of an erasure of another scope.
    IdIsTaken,
}

/// An erasure on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Its id.
    pub id: Uuid,
    /// What is erased.
    pub scope: Scope,
    /// Who asked for it.
    pub user: String,
    /// What is open is cancelled.
    pub cancels: bool,
    /// When it was asked for.
    pub begun_at: Time,
    /// What was submitted until then is erased.
    pub until: Time,
    /// When the last of it was deleted.
    pub erased_at: Option<Time>,
    /// How far it is.
    pub phase: Phase,
    pub(super) after_text: Option<String>,
    pub(super) after_id: Option<Uuid>,
    pub(super) after_letter: Option<i64>,
    /// When the oldest and the newest of what was erased had been submitted.
    pub submitted: Option<(Time, Time)>,
    /// What was erased so far.
    pub counts: ForgetCounts,
}

/// A row of the table.
pub(super) struct RawTombstone {
    pub(super) id: Uuid,
    pub(super) tenant: String,
    pub(super) conversation: Option<String>,
    pub(super) actor: String,
    pub(super) cancels: bool,
    pub(super) begun_at: Time,
    pub(super) until_at: Option<Time>,
    pub(super) erased_at: Option<Time>,
    pub(super) phase: String,
    pub(super) after_text: Option<String>,
    pub(super) after_id: Option<Uuid>,
    pub(super) after_letter: Option<i64>,
    pub(super) first_at: Option<Time>,
    pub(super) last_at: Option<Time>,
    pub(super) tasks: i64,
    pub(super) messages: i64,
    pub(super) steps: i64,
    pub(super) calls: i64,
    pub(super) model_turns: i64,
    pub(super) attempts: i64,
    pub(super) late_reports: i64,
    pub(super) dead_letters: i64,
    pub(super) keys: i64,
    pub(super) statistics: i64,
    pub(super) tokens: i64,
}

impl TryFrom<RawTombstone> for Tombstone {
    type Error = StoreError;

    fn try_from(raw: RawTombstone) -> Result<Self, StoreError> {
        Ok(Self {
            id: raw.id,
            scope: Scope { tenant: raw.tenant, conversation: raw.conversation },
            user: raw.actor,
            cancels: raw.cancels,
            begun_at: raw.begun_at,
            until: raw.until_at.unwrap_or(raw.begun_at),
            erased_at: raw.erased_at,
            phase: Phase::parse(&raw.phase)?,
            after_text: raw.after_text,
            after_id: raw.after_id,
            after_letter: raw.after_letter,
            submitted: raw.first_at.zip(raw.last_at),
            counts: ForgetCounts {
                tasks: unsigned(raw.tasks),
                messages: unsigned(raw.messages),
                steps: unsigned(raw.steps),
                calls: unsigned(raw.calls),
                model_turns: unsigned(raw.model_turns),
                attempts: unsigned(raw.attempts),
                late_reports: unsigned(raw.late_reports),
                dead_letters: unsigned(raw.dead_letters),
                keys: unsigned(raw.keys),
                statistics: unsigned(raw.statistics),
                tokens: unsigned(raw.tokens),
            },
        })
    }
}

impl Store {
    /// Writes the tombstone of an erasure and the action that it is, or finds the one to work on: that with this id, or
    /// another one of the same scope that is not finished.
    pub async fn begin_erasure(&self, new: &NewErasure<'_>) -> Result<Begun, StoreError> {
        let Caller { tenant, user, role, token, .. } = new.caller;
        let (tenant, token) = (tenant.as_str(), token.as_ref().map(TokenId::as_str));
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let begin = sqlx::query_file!(
                "sql/forget_begin.sql",
                new.id,
                tenant,
                new.conversation,
                user.as_str(),
                new.cancels,
                role.as_str(),
                new.door,
                new.verb,
                token
            );
            begin.execute(&mut *db).await?;
            db.done(());
            Ok(())
        })
        .await?;
        // Only now, so that whatever is submitted later finds the tombstone.
        let found = on_connection!(self, |db| {
            sqlx::query_file_as!(
                RawTombstone,
                "sql/forget_take.sql",
                new.id,
                tenant,
                new.conversation,
                new.cancels,
                user.as_str(),
                role.as_str(),
                new.door,
                new.verb,
                token
            )
            .fetch_optional(db)
            .await
        })?;
        match found {
            Some(found) => Tombstone::try_from(found).map(|found| Begun::Erasure(Box::new(found))),
            None if self.is_erasure(new.id).await? => Ok(Begun::IdIsTaken),
            None => Ok(Begun::OtherEnded),
        }
    }

    /// Whether there is an erasure with this id, of whatever scope.
    async fn is_erasure(&self, id: Uuid) -> Result<bool, StoreError> {
        on_connection!(self, |db| {
            let found = sqlx::query_scalar!("SELECT id FROM tombstones WHERE id = $1", id);
            let found = found.fetch_optional(&mut *db).await?;
            Ok(found.is_some())
        })
    }

    /// Takes a tombstone back before anything was deleted. Its action is refused with this code.
    pub async fn give_up_erasure(&self, id: Uuid, why: Code) -> Result<(), StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            sqlx::query_file!("sql/forget_give_up.sql", id, why.as_str()).execute(&mut *db).await?;
            db.done(());
            Ok(())
        })
        .await
    }

    /// Erasures that are not finished, and that nobody worked on for so many ms; each by its id, with what cannot be read of it.
    pub async fn take_idle_erasures(
        &self,
        idle_ms: u64,
        limit: u32,
    ) -> Result<Vec<(Uuid, Result<Tombstone, StoreError>)>, StoreError> {
        let idle_ms = crate::columns::bigint(idle_ms);
        let rows = once_on_connection!(self, |db| {
            sqlx::query_file_as!(RawTombstone, "sql/forget_take_idle.sql", idle_ms, i64::from(limit))
                .fetch_all(db)
                .await
        })?;
        Ok(rows.into_iter().map(|row| (row.id, Tombstone::try_from(row))).collect())
    }

    /// The newest erasures, perhaps of one tenant only.
    pub async fn tombstones(&self, tenant: Option<&str>, limit: u32) -> Result<Vec<Tombstone>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_file_as!(RawTombstone, "sql/tombstones.sql", tenant, i64::from(limit)).fetch_all(db).await
        })?;
        // One in a phase of a newer version is not shown: it has not ended, and that version finishes it.
        Ok(rows.into_iter().filter_map(|row| Tombstone::try_from(row).ok()).collect())
    }
}

/// Locks a tombstone, and reads it again.
pub(super) async fn lock(transaction: &mut Transaction, id: Uuid) -> Result<Option<RawTombstone>, sqlx::Error> {
    sqlx::query_file_as!(RawTombstone, "sql/forget_lock.sql", id).fetch_optional(&mut **transaction).await
}
