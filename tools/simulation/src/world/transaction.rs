//! Transactions of dispatchers, and how they end.

use super::{dispatcher::Dispatcher, state::World};
use crate::Mutation;

/// How a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is committed, and the dispatcher carries out its effects.
    Commit,
    /// It is not, and the dispatcher knows.
    Vanish,
    /// It is committed, but the dispatcher gets an error.
    Unknown,
    /// The dispatcher dies before the commit.
    DieBefore,
    /// The dispatcher dies right after the commit.
    DieAfter,
}

impl Fate {
    /// Nineteen of twenty go well.
    pub(super) const fn of(pick: u32) -> Self {
        match pick >> 24 {
            243..=246 => Self::Vanish,
            247..=250 => Self::Unknown,
            251 | 252 => Self::DieBefore,
            253..=255 => Self::DieAfter,
            _ => Self::Commit,
        }
    }

    pub(super) const fn is_committed(self) -> bool {
        matches!(self, Self::Commit | Self::Unknown | Self::DieAfter)
    }
}

impl World {
    /// Runs one transaction. `None` if the dispatcher does not get to know that it was committed; then it may be dead.
    pub(super) fn transaction<T>(&mut self, d: usize, fate: Fate, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let fate = if self.postgres_up { fate } else { Fate::Vanish };
        if fate != Fate::Commit {
            self.tell(|| format!("    the transaction of dispatcher {d}: {fate:?}"));
        }
        let items = self.tables.inbox.len();
        let done = fate.is_committed().then(|| work(self));
        if fate == Fate::DieAfter && self.has(Mutation::InboxOutsideTransaction) && self.tables.inbox.len() > items {
            self.tables.inbox.truncate(items);
        }
        if matches!(fate, Fate::DieBefore | Fate::DieAfter) {
            self.kill_dispatcher(d);
        }
        done.filter(|_| fate == Fate::Commit)
    }

    pub(super) fn kill_dispatcher(&mut self, d: usize) {
        self.tell(|| format!("dispatcher {d} dies, another one starts"));
        let process = self.new_process();
        let (now, outage) = (self.now, self.outages);
        // Its unfinished work goes with it; the list's memory is used again.
        let mut works = std::mem::take(&mut self.dispatchers[d].works);
        works.clear();
        self.dispatchers[d] = Dispatcher { outage, works, ..Dispatcher::new(process, now) };
    }
}
