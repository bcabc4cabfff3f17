//! Answers questions about statistics: from the hours that were rolled up, and live from the calls that were not yet.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use sqlx::PgConnection;

use super::{
    question::{By, Group, GroupSums, Stats, StatsQuestion},
    roll_up::{read_attempts, read_calls},
    slice::{self, Range, hour_of},
    tally::Tally,
};
use crate::{Store, StoreError, Time};

/// Hours that are read at once: each has about 1,000 rows at most.
const HOURS: TimeDelta = TimeDelta::hours(24);
/// Calls that are counted live at once.
const SLICE: u32 = 5_000;
/// Calls that are counted live at most, and for how long.
const LIVE: usize = 200_000;
const LIVE_FOR: Duration = Duration::from_secs(20);

impl Store {
    /// The figures of calls that ended in these hours. What was rolled up and what is counted live is read in one snapshot, so
    /// that no call counts twice or not at all.
    pub async fn stats(&self, question: &StatsQuestion) -> Result<Stats, StoreError> {
        self.run_again(|| async {
            let mut db = self.begin().await?;
            sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").execute(&mut *db).await?;
            let row = sqlx::query!(r#"SELECT clock_timestamp() AS "now!", rolled_until FROM stats_progress"#)
                .fetch_one(&mut *db)
                .await?;
            let (since, end) = (hour_of(question.since), question.end(row.now));
            let rolled = row.rolled_until.map_or(since, |rolled| rolled.clamp(since, end.max(since)));
            let mut groups = Groups { question, groups: BTreeMap::new() };
            let mut from = since;
            while from < rolled {
                let until = rolled.min(from + HOURS);
                groups.add(match question.by {
                    By::Worker => Tally { attempts: read_attempts(&mut db, from, until).await?, ..Tally::default() },
                    _ => Tally { calls: read_calls(&mut db, from, until).await?, ..Tally::default() },
                });
                from = until;
            }
            let until = groups.add_live(&mut db, rolled, end).await?;
            db.commit().await?;
            // Ahead of the clock, it may lack calls that ended since: the next roll-up sets it back.
            let is_complete = until >= end && row.rolled_until.is_none_or(|rolled| rolled <= row.now);
            Ok(Stats { since, until, is_complete, groups: groups.groups.into_iter().collect() })
        })
        .await
    }
}

struct Groups<'a> {
    question: &'a StatsQuestion,
    groups: BTreeMap<Group, GroupSums>,
}

impl Groups<'_> {
    /// Counts calls that ended in this range, oldest first, as far as that is possible at once; returns how far it came.
    async fn add_live(&mut self, db: &mut PgConnection, mut from: Time, until: Time) -> Result<Time, sqlx::Error> {
        let (began, mut counted) = (Instant::now(), 0);
        while from < until && counted < LIVE && began.elapsed() < LIVE_FOR {
            let slice = slice::read(db, Range { from, until, limit: SLICE }).await?;
            self.add(slice.tally);
            counted += slice.calls;
            from = slice.until;
        }
        Ok(from)
    }

    fn add(&mut self, tally: Tally) {
        let by_worker = self.question.by == By::Worker;
        for (key, sums) in tally.calls {
            if !self.question.takes(&key.tenant, &key.tool) {
                continue;
            }
            let Some(group) = self.question.group_of_call(&key) else { continue };
            let states = BTreeMap::from([(key.state, sums.calls)]);
            self.groups.entry(group).or_default().add(&GroupSums { states, calls: sums, ..GroupSums::default() });
        }
        for (key, sums) in tally.attempts {
            if by_worker && self.question.takes(&key.tenant, &key.tool) {
                let attempts = GroupSums { attempts: sums, ..GroupSums::default() };
                self.groups.entry(Group::Name(key.worker)).or_default().add(&attempts);
            }
        }
    }
}
