//! One step of an erasure as the tombstone keeps it.

use redial_proto::ForgetCounts;
use sqlx::PgConnection;
use uuid::Uuid;

use super::tombstone::{Phase, RawTombstone, Tombstone};
use crate::{Time, columns::bigint};

/// Where an erasure is after a step, and what the step erased.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    pub(super) after_text: Option<String>,
    pub(super) after_id: Option<Uuid>,
    pub(super) after_letter: Option<i64>,
    /// When the oldest and the newest of what was erased had been submitted.
    pub(super) first: Option<Time>,
    pub(super) last: Option<Time>,
    pub(super) erased: ForgetCounts,
}

impl Progress {
    /// Where it is before the step.
    pub(super) fn of(tombstone: &Tombstone) -> Self {
        Self {
            phase: tombstone.phase,
            after_text: tombstone.after_text.clone(),
            after_id: tombstone.after_id,
            after_letter: tombstone.after_letter,
            first: None,
            last: None,
            erased: ForgetCounts::default(),
        }
    }

    /// The next phase begins at its beginning.
    pub(super) fn go_on_with(&mut self, phase: Phase) {
        (self.phase, self.after_text, self.after_id, self.after_letter) = (phase, None, None, None);
    }

    pub(super) async fn write(&self, db: &mut PgConnection, id: Uuid) -> Result<RawTombstone, sqlx::Error> {
        let erased = &self.erased;
        sqlx::query_file_as!(
            RawTombstone,
            "sql/forget_progress.sql",
            id,
            self.phase.as_str(),
            self.after_text,
            self.after_id,
            self.after_letter,
            self.first,
            self.last,
            bigint(erased.tasks),
            bigint(erased.messages),
            bigint(erased.steps),
            bigint(erased.calls),
            bigint(erased.model_turns),
            bigint(erased.attempts),
            bigint(erased.late_reports),
            bigint(erased.dead_letters),
            bigint(erased.keys),
            bigint(erased.statistics),
            bigint(erased.tokens),
        )
        .fetch_one(db)
        .await
    }
}
