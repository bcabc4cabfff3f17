//! Answers questions about statistics: from the sums of hours, and live from the calls that are in the queue.

use std::{
    collections::BTreeMap,
    ops::Range,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    question::{By, Group, GroupSums, ModelsBy, ModelsQuestion, Stats, StatsQuestion},
    rows::{read_attempts, read_calls, sum_models, sum_places},
    slice,
    tally::{Tally, day_of, hour_of},
};
use crate::{Store, StoreError, Time, columns::bigint};

/// Days that are read at once: of each, a day of hours has about 24,000 rows at most.
const DAYS: TimeDelta = TimeDelta::days(30);
/// Calls that are counted live at once.
const SLICE: usize = 5_000;
/// Calls that are counted live at most, and for how long.
const LIVE: usize = 200_000;
const LIVE_FOR: Duration = Duration::from_secs(20);

/// What an answer is made of: only this is read of the hours that were rolled up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Calls,
    Attempts,
    /// Of one tenant, and added up as the question groups them.
    Models(&'a ModelsQuestion),
    /// Of one tenant, and of this tool.
    Places(&'a str),
}

/// Which time a question is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// Hours that were rolled up are read of this tenant only; `None`: of all.
    pub(super) tenant: Option<&'a str>,
    /// Calls and attempts are read of this tool only; `None`: of all.
    pub(super) tool: Option<&'a str>,
    pub(super) since: Time,
    /// `None`: until now.
    pub(super) until: Option<Time>,
}

/// Which time an answer is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) since: Time,
    pub(super) until: Time,
    pub(super) is_complete: bool,
}

impl Store {
    /// The figures of calls that ended in these hours.
    pub async fn stats(&self, question: &StatsQuestion) -> Result<Stats, StoreError> {
        let part = if question.by == By::Worker { Part::Attempts } else { Part::Calls };
        let asked = Asked {
            tenant: question.tenant.as_deref(),
            tool: question.tool.as_deref(),
            since: question.since,
            until: question.until,
        };
        let (answered, groups) =
            self.tallies(asked, part, |groups: &mut Groups, tally| groups.add(question, tally)).await?;
        let Answered { since, until, is_complete } = answered;
        Ok(Stats { since, until, is_complete, groups: groups.0.into_iter().collect() })
    }

    /// Adds up sums of these hours, beginning with nothing. The hours and the queue are read in one snapshot, so
    /// that no call counts twice or not at all.
    pub(super) async fn tallies<G: Default>(
        &self,
        asked: Asked<'_>,
        part: Part<'_>,
        add: impl Fn(&mut G, Tally),
    ) -> Result<(Answered, G), StoreError> {
        self.run_again(|| async {
            let mut db = self.begin().await?;
            sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").execute(&mut *db).await?;
            let now = sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(&mut *db).await?;
            let (since, end) = (hour_of(asked.since), asked.end(now));
            let mut sums = G::default();
            // Before this there are days to read, if the question may be answered from them.
            let days = if part.has_days() { day_of(end) } else { since };
            let mut from = since;
            while from < end {
                let day = day_of(from) == from && from < days;
                let until = if day { days.min(from + DAYS) } else { end.min(day_of(from) + TimeDelta::days(1)) };
                add(&mut sums, read_part(&mut db, part, asked, from..until, day).await?);
                from = until;
            }
            let uncounted = add_live(&mut db, since..end, |tally| add(&mut sums, tally)).await?;
            db.commit().await?;
            let (until, is_complete) = (uncounted.unwrap_or(end), uncounted.is_none());
            Ok((Answered { since, until, is_complete }, sums))
        })
        .await
    }
}

impl Part<'_> {
    /// True if whole days can be read of it.
    fn has_days(self) -> bool {
        matches!(self, Self::Models(question) if question.by != ModelsBy::Hour)
    }
}

impl Asked<'_> {
    /// The end of the last hour, if it is before `now`.
    fn end(&self, now: Time) -> Time {
        let end = self.until.map(|until| hour_of(until - TimeDelta::microseconds(1)) + TimeDelta::hours(1));
        end.map_or(now, |end| end.min(now))
    }
}

/// What was rolled up of these hours; with `days`, of whole days that were added up.
async fn read_part(
    db: &mut PgConnection,
    part: Part<'_>,
    Asked { tenant, tool, .. }: Asked<'_>,
    Range { start: from, end: until }: Range<Time>,
    days: bool,
) -> Result<Tally, sqlx::Error> {
    let of = tenant.unwrap_or_default();
    Ok(match part {
        Part::Calls => Tally { calls: read_calls(db, from, until, tenant, tool).await?, ..Tally::default() },
        Part::Attempts => Tally { attempts: read_attempts(db, from, until, tenant, tool).await?, ..Tally::default() },
        Part::Models(question) => {
            Tally { models: sum_models(db, from, until, days, Some((of, question))).await?, ..Tally::default() }
        }
        Part::Places(tool) => {
            Tally { places: sum_places(db, from, until, Some((of, tool))).await?, ..Tally::default() }
        }
    })
}

/// Counts calls in the queue that ended in this range, oldest first, as far as that is possible at once; returns when the first one ended
/// that was not counted.
async fn add_live(
    db: &mut PgConnection,
    ended: Range<Time>,
    mut add: impl FnMut(Tally),
) -> Result<Option<Time>, sqlx::Error> {
    let began = Instant::now();
    let queued = sqlx::query!(
        "SELECT call_id, ended_at FROM uncounted_calls WHERE ended_at >= $1 AND ended_at < $2 ORDER BY ended_at LIMIT $3",
        ended.start,
        ended.end,
        bigint(LIVE as u64 + 1)
    );
    let mut queued = queued.fetch_all(&mut *db).await?;
    let mut uncounted = if queued.len() > LIVE { queued.pop().map(|first| first.ended_at) } else { None };
    for slice in queued.chunks(SLICE) {
        if began.elapsed() > LIVE_FOR {
            uncounted = slice.first().map(|first| first.ended_at);
            break;
        }
        let calls: Vec<Uuid> = slice.iter().map(|row| row.call_id).collect();
        add(slice::read(db, &calls).await?);
    }
    Ok(uncounted)
}

#[derive(Default)]
struct Groups(BTreeMap<Group, GroupSums>);

impl Groups {
    fn add(&mut self, question: &StatsQuestion, tally: Tally) {
        let by_worker = question.by == By::Worker;
        for (key, sums) in tally.calls {
            if !question.takes(&key.tenant, &key.tool) {
                continue;
            }
            let Some(group) = question.group_of_call(&key) else { continue };
            let states = BTreeMap::from([(key.state, sums.calls)]);
            self.0.entry(group).or_default().add(&GroupSums { states, calls: sums, ..GroupSums::default() });
        }
        for (key, sums) in tally.attempts {
            if by_worker && question.takes(&key.tenant, &key.tool) {
                let attempts = GroupSums { attempts: sums, ..GroupSums::default() };
                self.0.entry(Group::Name(key.worker)).or_default().add(&attempts);
            }
        }
    }
}
