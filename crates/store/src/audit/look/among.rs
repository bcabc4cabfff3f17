//! Calls that a search finds without an index of `calls` in the order of their ids: those of a worker, those that have not ended,
//! those of an agent. Where they are few, only they are looked at.

use redial_proto::Tenant;
use uuid::Uuid;

use super::{STEP, Search};
use crate::{
    Store, StoreError,
    audit::history::{since_id, until_id},
};

/// Tasks of an agent, whoever's they are, whose calls are collected. With more of them a search follows an index of `calls` instead,
/// where some of every few thousand are such calls.
const TASKS: i64 = 500;

/// The next calls to look at, newest first.
pub(super) struct Among {
    pub(super) calls: Vec<Uuid>,
    /// No other call can match.
    pub(super) ended: bool,
}

impl Among {
    fn of(calls: Vec<Uuid>, most: u32) -> Self {
        Self { ended: calls.len() < most as usize, calls }
    }
}

impl Store {
    /// Returns the calls to look at; `None`: they are too many, or the search is for something else.
    pub(super) async fn among(&self, search: &Search, tenant: &Tenant, step: u32) -> Result<Option<Among>, StoreError> {
        let filter = &search.filter;
        if filter.key.is_some() || filter.task.is_some() {
            return Ok(None);
        }
        if let Some(worker) = &filter.worker {
            return Ok(Some(Among::of(self.calls_of_worker(worker, filter, step).await?, step)));
        }
        if filter.state.is_some_and(|state| !state.is_terminal())
            && let Some(live) = self.live_calls(search, step).await?
        {
            return Ok(Some(live));
        }
        match &search.agent {
            Some(agent) => self.calls_of_agent(agent, search, tenant, step).await,
            None => Ok(None),
        }
    }

    /// Returns the calls in those states in which all calls together are few, unless many wait.
    async fn live_calls(&self, search: &Search, step: u32) -> Result<Option<Among>, StoreError> {
        let mut calls: Vec<Uuid> = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let calls = sqlx::query_file_scalar!("sql/live_calls.sql", i64::from(STEP) + 1);
                let calls = calls.fetch_all(&mut *db).await?;
                Ok(db.done(calls))
            })
            .await?;
        if calls.len() > STEP as usize {
            return Ok(None);
        }
        let before = search.filter.before;
        calls.retain(|call| before.is_none_or(|before| *call < before.0));
        calls.sort_unstable_by(|a, b| b.cmp(a));
        let ended = calls.len() <= step as usize;
        calls.truncate(step as usize);
        Ok(Some(Among { calls, ended }))
    }

    async fn calls_of_agent(
        &self,
        agent: &str,
        search: &Search,
        tenant: &Tenant,
        step: u32,
    ) -> Result<Option<Among>, StoreError> {
        let filter = &search.filter;
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let tasks = sqlx::query_file!("sql/tasks_of_agent.sql", agent, TASKS, tenant.as_str());
            let tasks = tasks.fetch_all(&mut *db).await?;
            if i64::try_from(tasks.len()) == Ok(TASKS) {
                return Ok(db.done(None));
            }
            let own: Vec<Uuid> = tasks.into_iter().filter(|task| task.is_own).map(|task| task.id).collect();
            let calls = sqlx::query_file_scalar!(
                "sql/calls_of_tasks.sql",
                &own,
                filter.before.map(|before| before.0),
                since_id(filter.since),
                until_id(filter.until),
                i64::from(step),
            );
            let calls = calls.fetch_all(&mut *db).await?;
            Ok(db.done(Some(Among::of(calls, step))))
        })
        .await
    }
}
