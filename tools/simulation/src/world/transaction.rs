//! Transactions of dispatchers, and the failures that can follow a commit.

use super::{dispatcher::Dispatcher, state::World};
use crate::Mutation;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    /// It is committed, and the dispatcher carries out its effects.
    Committed,
    /// It is rolled back, and the dispatcher knows that.
    RolledBack,
    /// It is committed, but the dispatcher gets an error.
    Unknown,
    /// The dispatcher dies before the commit.
    DieBefore,
    /// The dispatcher dies right after the commit.
    DieAfter,
}

impl CommitOutcome {
    /// Nineteen of twenty transactions are committed without an error.
    pub(super) const fn of(pick: u32) -> Self {
        match pick >> 24 {
            243..=246 => Self::RolledBack,
            247..=250 => Self::Unknown,
            251 | 252 => Self::DieBefore,
            253..=255 => Self::DieAfter,
            _ => Self::Committed,
        }
    }

    pub(super) const fn is_committed(self) -> bool {
        matches!(self, Self::Committed | Self::Unknown | Self::DieAfter)
    }
}

impl World {
    /// Runs one transaction. `None` if the dispatcher does not learn that it was committed; then it may have died.
    pub(super) fn transaction<T>(
        &mut self,
        d: usize,
        commit: CommitOutcome,
        body: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let commit = if self.postgres_up { commit } else { CommitOutcome::RolledBack };
        if commit != CommitOutcome::Committed {
            self.log(|| format!("    the transaction of dispatcher {d}: {commit:?}"));
        }
        let items = self.tables.inbox.len();
        let done = commit.is_committed().then(|| body(self));
        if commit == CommitOutcome::DieAfter
            && self.has(Mutation::InboxOutsideTransaction)
            && self.tables.inbox.len() > items
        {
            self.tables.inbox.truncate(items);
        }
        if matches!(commit, CommitOutcome::DieBefore | CommitOutcome::DieAfter) {
            self.kill_dispatcher(d);
        }
        done.filter(|_| commit == CommitOutcome::Committed)
    }

    pub(super) fn kill_dispatcher(&mut self, d: usize) {
        self.log(|| format!("dispatcher {d} dies, another one starts"));
        let process = self.new_process();
        let (now, outage) = (self.now, self.outages);
        // The process loses its unfinished operations; the list's memory is used again.
        let mut operations = std::mem::take(&mut self.dispatchers[d].operations);
        operations.clear();
        let window = self.setup.window();
        self.dispatchers[d] = Dispatcher { outage, operations, ..Dispatcher::new(process, now, window) };
        if self.postgres_up {
            self.look_at_workers(d);
        }
    }
}
