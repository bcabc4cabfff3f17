//! Tombstones: how far erasures are, and which there were.

use redial_proto::{Caller, Code, ForgetCounts, TokenId};
use uuid::Uuid;

use crate::{StoreError, Time, columns::bigint, connect::Store};

/// A conversation, or everything of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub tenant: String,
    /// The conversation; `None`: everything of the tenant.
    pub conversation: Option<String>,
}

/// What an erasure does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It makes sure that nothing is open. Nothing is deleted yet.
    Open,
    Letters,
    /// It deletes tasks with their messages and steps.
    Tasks,
    /// It deletes calls with their attempts and late reports.
    Calls,
    Statistics,
    /// It deletes dead letters that named calls which were deleted meanwhile.
    LastLetters,
    /// Everything is erased.
    Done,
}

impl Phase {
    pub(super) const ALL: [Self; 7] =
        [Self::Open, Self::Letters, Self::Tasks, Self::Calls, Self::Statistics, Self::LastLetters, Self::Done];

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
    pub cancels: bool,
}

/// An erasure on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub id: Uuid,
    pub scope: Scope,
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
    /// How far the phase is, if it has begun.
    pub(super) position: Option<String>,
    /// When the oldest and the newest of what was erased had been submitted.
    pub submitted: Option<(Time, Time)>,
    pub counts: ForgetCounts,
}

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
    pub(super) position: Option<String>,
    pub(super) first_at: Option<Time>,
    pub(super) last_at: Option<Time>,
    pub(super) counts: Option<String>,
}

impl TryFrom<RawTombstone> for Tombstone {
    type Error = StoreError;

    fn try_from(raw: RawTombstone) -> Result<Self, StoreError> {
        let counts = raw.counts.as_deref().map_or(Ok(ForgetCounts::default()), serde_json::from_str);
        Ok(Self {
            id: raw.id,
            scope: Scope { tenant: raw.tenant, conversation: raw.conversation },
            user: raw.actor,
            cancels: raw.cancels,
            begun_at: raw.begun_at,
            until: raw.until_at.unwrap_or(raw.begun_at),
            erased_at: raw.erased_at,
            phase: Phase::parse(&raw.phase)?,
            position: raw.position,
            submitted: raw.first_at.zip(raw.last_at),
            counts: counts.map_err(|error| StoreError::BadData(format!("the counts of a tombstone: {error}")))?,
        })
    }
}

impl Tombstone {
    /// Reads the position as the phase has it; `None` at its beginning.
    pub(super) fn position<T: std::str::FromStr>(&self) -> Option<T> {
        self.position.as_deref()?.parse().ok()
    }

    /// Goes on with the beginning of the next phase.
    pub(super) fn go_on_with(&mut self, phase: Phase) {
        (self.phase, self.position) = (phase, None);
    }

    /// Adds what a step erased, and when the oldest and the newest of it had been submitted.
    pub(super) fn add(&mut self, erased: &ForgetCounts, first: Option<Time>, last: Option<Time>) {
        self.counts.add(erased);
        if let Some((first, last)) = first.zip(last) {
            let (from, to) = self.submitted.unwrap_or((first, last));
            self.submitted = Some((from.min(first), to.max(last)));
        }
    }

    /// Writes how far it is.
    pub(super) async fn write(&mut self, db: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
        let counts = Some(&self.counts).filter(|counts| **counts != ForgetCounts::default());
        let counts = counts.and_then(|counts| serde_json::to_string(counts).ok());
        self.erased_at = sqlx::query_file_scalar!(
            "sql/forget_progress.sql",
            self.id,
            self.phase.as_str(),
            self.position,
            self.submitted.map(|(first, _)| first),
            self.submitted.map(|(_, last)| last),
            counts,
            bigint(self.counts.tasks + self.counts.calls),
        )
        .fetch_one(db)
        .await?;
        Ok(())
    }
}

impl Store {
    /// Writes the tombstone of an erasure and the action that it is, or finds the one that is to be finished: that with this id,
    /// or another one of the same scope. `None` if its id is that of another scope, or if another one of the same scope was
    /// finished at this moment.
    pub async fn begin_erasure(&self, new: &NewErasure<'_>) -> Result<Option<Tombstone>, StoreError> {
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
        found.map(Tombstone::try_from).transpose()
    }

    /// Returns the erasure with this id, of whatever scope.
    pub async fn tombstone(&self, id: Uuid) -> Result<Option<Tombstone>, StoreError> {
        let none: Option<&str> = None;
        let found = on_connection!(self, |db| {
            sqlx::query_file_as!(RawTombstone, "sql/tombstones.sql", none, id, 1).fetch_optional(db).await
        })?;
        found.map(Tombstone::try_from).transpose()
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

    /// Takes an erasure whose next step is due, for so many ms: its id, with what cannot be read of it.
    pub async fn take_erasure(&self, ms: u64) -> Result<Option<(Uuid, Result<Tombstone, StoreError>)>, StoreError> {
        let row = once_on_connection!(self, |db| {
            sqlx::query_file_as!(RawTombstone, "sql/forget_take_due.sql", bigint(ms)).fetch_optional(db).await
        })?;
        Ok(row.map(|row| (row.id, Tombstone::try_from(row))))
    }

    /// Returns the newest erasures, perhaps of one tenant only.
    pub async fn tombstones(&self, tenant: Option<&str>, limit: u32) -> Result<Vec<Tombstone>, StoreError> {
        let rows = on_connection!(self, |db| {
            let any: Option<Uuid> = None;
            sqlx::query_file_as!(RawTombstone, "sql/tombstones.sql", tenant, any, i64::from(limit)).fetch_all(db).await
        })?;
        // One in a phase of a newer version is not shown: it has not ended, and that version finishes it.
        Ok(rows.into_iter().filter_map(|row| Tombstone::try_from(row).ok()).collect())
    }
}
