//! A database with ended calls, and what every test asks of it.

use std::ops::Deref;

use chrono::{DurationRound, TimeDelta, Utc};
use redial_store::{
    Pass, Time,
    stats::{By, GroupSums, RolledUp, Stats, StatsQuestion},
};

use super::made::Made;
use crate::fixture::Fixture as Database;

pub(super) struct Fixture {
    database: Database,
    /// The start of an hour some hours ago.
    pub(super) begin: Time,
}

impl Deref for Fixture {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl Fixture {
    pub(super) async fn empty() -> Self {
        let begin = Utc::now().duration_trunc(TimeDelta::hours(1)).unwrap() - TimeDelta::hours(5);
        Self { database: Database::open().await, begin }
    }

    /// Fills it with this many calls that ended in three hours, two at a time, as the calls of a batch do.
    pub(super) async fn filled(calls: i32) -> Self {
        let fixture = Self::empty().await;
        let mut transaction = fixture.db.begin().await.unwrap();
        for n in 0..calls {
            let at = fixture.begin + TimeDelta::hours(3) / calls * (n / 2 * 2);
            Made::new("book", at).write(&mut transaction).await;
        }
        transaction.commit().await.unwrap();
        fixture
    }

    pub(super) async fn add(&self, made: Made) {
        made.write(&mut self.db.acquire().await.unwrap()).await;
    }

    pub(super) fn question(&self, by: By) -> StatsQuestion {
        StatsQuestion { by, and: None, since: self.begin, until: None, tool: None, tenant: None }
    }

    pub(super) async fn ask(&self, question: &StatsQuestion) -> Stats {
        self.store.stats(question).await.unwrap()
    }

    /// Fails unless each of these calls counts once, and so do their attempts.
    pub(super) async fn assert_counted(&self, calls: u64) {
        let sum = async |by, of: fn(&GroupSums) -> u64| {
            let stats = self.ask(&self.question(by)).await;
            assert!(stats.is_complete);
            stats.groups.iter().map(|(_, sums)| of(sums)).sum::<u64>()
        };
        assert_eq!(sum(By::Hour, |sums| sums.calls.calls).await, calls);
        assert_eq!(sum(By::Worker, |sums| sums.attempts.attempts).await, calls, "attempts");
    }

    /// Rolls up everything in the queue; returns how many calls that were.
    pub(super) async fn roll_up(&self, limit: u32) -> usize {
        let (mut pass, mut all) = (Pass::default(), 0);
        loop {
            match self.store.roll_up(&mut pass, limit).await.unwrap() {
                RolledUp::Added { calls } => all += calls,
                RolledUp::Done => return all,
                RolledUp::Busy => tokio::task::yield_now().await,
            }
        }
    }
}
