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
    question::{By, Group, GroupSums, Stats, StatsQuestion},
    rows::{Apart, add_up, read},
    slice,
    tally::{AttemptSums, CallSums, Kind, Tally, day_of, hour_of},
};
use crate::{Store, StoreError, Time, columns::bigint};

/// Calls that are counted live at once.
const SLICE: usize = 5_000;
/// Calls that are counted live at most, and for how long.
const LIVE: usize = 200_000;
const LIVE_FOR: Duration = Duration::from_secs(20);

/// What is read of the hours that were rolled up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) kind: Kind,
    /// Only of this tenant; `None`: of all.
    pub(super) tenant: Option<&'a str>,
    /// Only of this tool; `None`: of all.
    pub(super) tool: Option<&'a str>,
    /// Added up in the database, but for what stays apart; `None`: row by row, with durations.
    pub(super) apart: Option<Apart>,
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
    /// Returns the figures of calls that ended in these hours.
    pub async fn stats(&self, question: &StatsQuestion) -> Result<Stats, StoreError> {
        let asked = Asked {
            kind: if question.by == By::Worker { Kind::Attempt } else { Kind::Call },
            apart: None,
            tenant: question.tenant.as_deref(),
            tool: question.tool.as_deref(),
            since: question.since,
            until: question.until,
        };
        let (answered, groups) = self.tallies(asked, |groups: &mut Groups, tally| groups.add(question, tally)).await?;
        let Answered { since, until, is_complete } = answered;
        Ok(Stats { since, until, is_complete, groups: groups.0.into_iter().collect() })
    }

    /// Adds up sums of these hours, beginning with nothing. The hours and the queue are read in one snapshot, so
    /// that no call counts twice or not at all.
    pub(super) async fn tallies<G: Default>(
        &self,
        asked: Asked<'_>,
        add: impl Fn(&mut G, Tally),
    ) -> Result<(Answered, G), StoreError> {
        self.run_again(|| async {
            let mut db = self.begin().await?;
            sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").execute(&mut *db).await?;
            let now = sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(&mut *db).await?;
            let (since, end) = (hour_of(asked.since), asked.end(now));
            let mut sums = G::default();
            let mut from = since;
            while from < end {
                // A day has about 24,000 rows at most.
                let hours = from..end.min(day_of(from) + TimeDelta::days(1));
                add(&mut sums, asked.read(&mut db, &hours).await?);
                from = hours.end;
            }
            let uncounted = add_live(&mut db, since..end, |tally| add(&mut sums, tally)).await?;
            db.commit().await?;
            let (until, is_complete) = (uncounted.unwrap_or(end), uncounted.is_none());
            Ok((Answered { since, until, is_complete }, sums))
        })
        .await
    }
}

impl Asked<'_> {
    async fn read(&self, db: &mut PgConnection, hours: &Range<Time>) -> Result<Tally, sqlx::Error> {
        let Self { kind, tenant, tool, .. } = *self;
        match self.apart {
            Some(apart) => add_up(db, kind, hours, [tenant, tool], apart).await,
            None => read(db, kind, hours, tenant, tool).await,
        }
    }

    /// Returns the end of the last hour, if it is before `now`.
    fn end(&self, now: Time) -> Time {
        let end = self.until.map(|until| hour_of(until - TimeDelta::microseconds(1)) + TimeDelta::hours(1));
        end.map_or(now, |end| end.min(now))
    }
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
        for (key, sums) in tally.into_iter().filter(|(key, _)| question.takes(&key.tenant, &key.tool)) {
            match key.kind {
                Kind::Call => {
                    let Some(group) = question.group_of_call(&key) else { continue };
                    let calls = CallSums::from(&sums);
                    let [state, ..] = key.names;
                    let states = BTreeMap::from([(state, calls.calls)]);
                    self.0.entry(group).or_default().add(&GroupSums { states, calls, ..GroupSums::default() });
                }
                Kind::Attempt if question.by == By::Worker => {
                    let [worker, ..] = key.names;
                    let attempts = GroupSums { attempts: AttemptSums::from(&sums), ..GroupSums::default() };
                    self.0.entry(Group::Name(worker)).or_default().add(&attempts);
                }
                Kind::Attempt | Kind::Model | Kind::Place => {}
            }
        }
    }
}
