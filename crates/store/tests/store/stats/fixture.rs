//! A database with random ended calls, and what every test asks of it.

use chrono::{DurationRound, TimeDelta, Utc};
use rand::{SeedableRng, rngs::StdRng};
use redial_store::{
    Purpose, Store, Time,
    stats::{By, RolledUp, Stats, StatsQuestion},
};
use redial_testkit::Servers;
use sqlx::PgPool;

use super::{
    expected::{assert_same, count},
    made::Made,
};
use crate::fixture::{connect, database};

pub(super) const BYS: [By; 5] = [By::Tool, By::Class, By::Model, By::Worker, By::Hour];

pub(super) struct Fixture {
    pub(super) db: PgPool,
    /// The start of an hour some hours ago.
    pub(super) begin: Time,
    pub(super) calls: Vec<Made>,
    servers: Servers,
}

impl Fixture {
    pub(super) async fn empty() -> Self {
        let servers = database().await;
        let db = PgPool::connect(servers.database_url()).await.unwrap();
        let begin = Utc::now().duration_trunc(TimeDelta::hours(1)).unwrap() - TimeDelta::hours(5);
        Self { db, begin, calls: Vec::new(), servers }
    }

    /// With this many calls that ended in three hours.
    pub(super) async fn filled(seed: u64, calls: usize) -> Self {
        let mut fixture = Self::empty().await;
        let mut random = StdRng::seed_from_u64(seed);
        let mut transaction = fixture.db.begin().await.unwrap();
        for _ in 0..calls {
            let made = Made::random(&mut random, fixture.begin);
            made.write(&mut transaction).await;
            fixture.calls.push(made);
        }
        transaction.commit().await.unwrap();
        fixture
    }

    pub(super) async fn add(&mut self, made: Made) {
        made.insert(&self.db).await;
        self.calls.push(made);
    }

    pub(super) async fn store(&self, purpose: Purpose) -> Store {
        connect(&self.servers, purpose).await
    }

    /// The end of the hours that hold calls.
    pub(super) fn end(&self) -> Time {
        self.begin + TimeDelta::hours(3)
    }

    pub(super) fn question(&self, by: By) -> StatsQuestion {
        StatsQuestion { by, and: None, since: self.begin, until: None, tool: None, tenant: None }
    }

    pub(super) async fn ask(&self, question: &StatsQuestion) -> Stats {
        let store = self.store(Purpose::Audit).await;
        let stats = store.stats(question).await.unwrap();
        store.close().await;
        stats
    }

    /// Fails unless every question has the answer that the calls give.
    pub(super) async fn assert_answers(&self, when: &str) {
        for by in BYS {
            let question = self.question(by);
            let only = |tool: &str, tenant: &str| StatsQuestion {
                tool: (!tool.is_empty()).then(|| tool.to_owned()),
                tenant: (!tenant.is_empty()).then(|| tenant.to_owned()),
                ..question.clone()
            };
            let second = StatsQuestion {
                since: self.begin + TimeDelta::hours(1),
                until: Some(self.begin + TimeDelta::hours(2)),
                ..question.clone()
            };
            for question in [question.clone(), only("book", ""), only("model-small", "acme"), second] {
                let stats = self.ask(&question).await;
                assert!(stats.is_complete);
                assert_same(&stats.groups, count(&self.calls, &question), &format!("{when}: {question:?}"));
            }
        }
    }

    /// Everything in the tables of statistics, as text.
    pub(super) async fn tables(&self) -> Vec<String> {
        let rows = "SELECT c::text FROM call_stats c UNION ALL SELECT a::text FROM attempt_stats a ORDER BY 1";
        sqlx::query_scalar(rows).fetch_all(&self.db).await.unwrap()
    }

    /// Rows in the table of calls are deleted, as retention does it.
    pub(super) async fn delete_calls(&self) {
        sqlx::raw_sql("DELETE FROM attempts; DELETE FROM calls").execute(&self.db).await.unwrap();
    }
}

/// Rolls up everything that ended before a time; how many calls that were.
pub(super) async fn roll_up(store: &Store, bound: Time, limit: u32) -> usize {
    let mut all = 0;
    loop {
        match store.roll_up(bound, limit).await.unwrap() {
            RolledUp::Added { calls } => all += calls,
            RolledUp::Done => return all,
            RolledUp::Busy => tokio::task::yield_now().await,
        }
    }
}
