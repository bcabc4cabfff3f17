//! The tasks of one transaction, from their lock to the decisions.

use std::collections::HashMap;

use redial_proto::{TaskId, TaskState};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Advancer, InboxItem, TaskChange, TaskRow, inbox, messages, row, start};
use crate::Time;

/// Locked tasks that somebody has to decide about, and what is clear about the others.
pub(super) struct Batch {
    open: Vec<Open>,
    clear: Decided,
}

struct Open {
    row: TaskRow,
    received: Vec<i64>,
}

/// What is to be written.
pub(super) struct Decided {
    pub(super) now: Time,
    /// Each with the task as it was, but for its messages and inbox.
    pub(super) changes: Vec<Decision>,
    /// Items of the inbox that are dealt with.
    pub(super) received: Vec<i64>,
    /// Tasks that wait on, because others come first.
    pub(super) held: Vec<Uuid>,
    /// Ended tasks that were told to start: their turn goes to the next.
    pub(super) skipped: Vec<Uuid>,
}

/// One decision.
pub(super) struct Decision {
    pub(super) change: TaskChange,
    pub(super) tenant: String,
    pub(super) conversation: String,
    /// The number of the last step before it.
    pub(super) last_step: u32,
    /// It is this that starts the task.
    pub(super) starts: bool,
}

impl Batch {
    /// Locks tasks and sorts them: those with something to decide, those that go on waiting, those that are over.
    pub(super) async fn lock(db: &mut PgConnection, tasks: &[TaskId], wait: bool) -> Result<Self, sqlx::Error> {
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        let rows = row::lock(db, &ids, wait).await?;
        if rows.len() < ids.len() {
            inbox::forget_orphans(db, &ids).await?;
        }
        let locked: Vec<Uuid> = rows.iter().map(|row| row.id.0).collect();
        let (now, received) = inbox::read(db, &locked).await?;
        let mut by_task = HashMap::<TaskId, (Vec<i64>, Vec<InboxItem>)>::new();
        for one in received {
            let (ids, items) = by_task.entry(one.task).or_default();
            ids.push(one.id);
            items.push(one.item);
        }
        let rows = rows.into_iter().map(|row| {
            let (received, inbox) = by_task.remove(&row.id).unwrap_or_default();
            Open { row: TaskRow { now, inbox, ..row }, received }
        });
        let open: Vec<Open> = rows.filter(Open::is_due).collect();
        let waiting: Vec<&TaskRow> = open.iter().filter(|one| one.wants_to_start()).map(|one| &one.row).collect();
        let mut starts = start::may_start(db, &waiting).await?;
        let mut batch = Self { open: Vec::new(), clear: Decided::nothing(now) };
        for mut one in open {
            one.row.start = starts.remove(&one.row.id);
            batch.sort(one);
        }
        Ok(batch)
    }

    fn sort(&mut self, one: Open) {
        let id = one.row.id.0;
        if one.row.state.is_terminal() {
            if one.row.inbox.iter().any(|item| matches!(item, InboxItem::Start)) {
                self.clear.skipped.push(id);
            }
            self.clear.received.extend(one.received);
        } else if one.wants_to_start() && one.row.start.is_none() {
            self.clear.held.push(id);
            self.clear.received.extend(one.received);
        } else {
            self.open.push(one);
        }
    }

    /// Reads the conversations that the advancer wants to see.
    pub(super) async fn load_messages(
        &mut self,
        db: &mut PgConnection,
        advancer: &mut impl Advancer,
    ) -> Result<(), sqlx::Error> {
        let mut wanted: Vec<&mut TaskRow> = self.open.iter_mut().map(|one| &mut one.row).collect();
        wanted.retain(|row| advancer.wants_messages(row));
        messages::load(db, &mut wanted).await
    }

    /// Asks for each task what becomes of it.
    pub(super) fn decide(self, advancer: &mut impl Advancer) -> Result<Decided, sqlx::Error> {
        let mut decided = self.clear;
        for Open { row, received } in self.open {
            let (id, tenant, conversation) = (row.id, row.tenant.clone(), row.conversation.clone());
            let (last_step, starts) = (row.last_step, row.start.is_some());
            if let Some(change) = advancer.advance(row) {
                if change.id != id {
                    let what = format!("asked about task {id}, the advancer decided about task {}", change.id);
                    return Err(sqlx::Error::InvalidArgument(what));
                }
                decided.changes.push(Decision { change, tenant, conversation, last_step, starts });
                decided.received.extend(received);
            }
        }
        Ok(decided)
    }
}

impl Open {
    /// Somebody has to look at it.
    fn is_due(&self) -> bool {
        !self.received.is_empty() || self.row.wake_at.is_some_and(|at| at <= self.row.now)
    }

    /// It waits, and nobody wants it stopped.
    fn wants_to_start(&self) -> bool {
        let cancelled = self.row.inbox.iter().any(|item| matches!(item, InboxItem::Cancel));
        self.row.state == TaskState::Waiting && !cancelled
    }
}

impl Decided {
    fn nothing(now: Time) -> Self {
        Self { now, changes: Vec::new(), received: Vec::new(), held: Vec::new(), skipped: Vec::new() }
    }
}
