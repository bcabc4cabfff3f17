//! Searches of a tenant: in steps that cost the same however few calls match, and whoever's calls are between them.

mod along;
mod among;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use redial_proto::{CallId, CallState, ErrorClass, ToolEffect};
use uuid::Uuid;

use self::along::Along;
use super::searched_for::Search;
use super::{
    FoundCall,
    history::{since_id, until_id},
};
use crate::{StoreError, TenantStore, Time};

/// Calls that one step reads at most.
const STEP: u32 = 2_000;
/// Calls that one step reads if their payloads are compared as well.
const STEP_INSIDE: u32 = 500;

/// Where a search stops, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After so many calls that match.
    pub matches: usize,
    /// After a step that makes it so many calls that were looked at.
    pub looked: u64,
    /// After a step that makes it so long.
    pub time: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// The calls that match, newest first.
    pub calls: Vec<FoundCall>,
    /// Calls of the tenant that were looked at.
    pub looked: u64,
    /// When the last one of them was submitted.
    pub back_to: Option<Time>,
    /// The next part begins before this call: set it as [`super::Filter::before`].
    pub last: Option<CallId>,
    /// No call is left.
    pub ended: bool,
}

struct Step {
    rows: Vec<RawLooked>,
    /// The last call of the index that was looked at.
    last: Option<CallId>,
    ended: bool,
}

struct RawLooked {
    call: Uuid,
    submitted_at: Time,
    is_own: bool,
    total_ms: Option<i64>,
    matches: bool,
}

impl TenantStore<'_> {
    /// Returns the next calls that match, as far as the limits let it look.
    pub async fn search(&self, search: &Search, limits: Limits) -> Result<Searched, StoreError> {
        let (began, mut searched) = (Instant::now(), Searched::default());
        let mut search = search.clone();
        while !searched.ended
            && searched.calls.len() < limits.matches
            && searched.looked < limits.looked
            && (searched.last.is_none() || began.elapsed() < limits.time)
        {
            let Step { rows, last, ended } = self.look(&search).await?;
            let matching: Vec<FoundCall> = rows.iter().filter(|row| row.matches).map(RawLooked::found).collect();
            let mut found = self.store().holding(&matching, &search.inside).await?;
            let room = limits.matches - searched.calls.len();
            let cut = found.len() > room;
            found.truncate(room);
            let last = if cut { found.last().map(|found| found.call) } else { last };
            for row in rows.iter().filter(|row| row.is_own && last.is_none_or(|last| row.call >= last.0)) {
                searched.looked += 1;
                searched.back_to = Some(row.submitted_at);
            }
            searched.calls.extend(found);
            searched.ended = !cut && ended;
            searched.last = last.or(searched.last);
            search.filter.before = searched.last.or(search.filter.before);
        }
        Ok(searched)
    }

    async fn look(&self, search: &Search) -> Result<Step, StoreError> {
        let step = if search.inside.is_empty() { STEP } else { STEP_INSIDE };
        let among = self.store().among(search, self.tenant(), step).await?;
        let mut rows = match &among {
            Some(among) if among.calls.is_empty() => Vec::new(),
            _ => self.rows(search, among.as_ref().map(|among| among.calls.as_slice()), step).await?,
        };
        if let Some(worker) = search.filter.worker.as_ref().filter(|_| among.is_none()) {
            let ran = self.ran_by(&rows, std::slice::from_ref(worker)).await?;
            for row in &mut rows {
                row.matches &= ran.contains(&row.call);
            }
        }
        if !search.not_workers.is_empty() {
            let ran = self.ran_by(&rows, &search.not_workers).await?;
            for row in &mut rows {
                row.matches &= !ran.contains(&row.call);
            }
        }
        Ok(match among {
            Some(among) => Step { rows, last: among.calls.last().copied().map(CallId), ended: among.ended },
            None => Step { last: rows.last().map(|row| CallId(row.call)), ended: rows.len() < step as usize, rows },
        })
    }

    async fn rows(&self, search: &Search, among: Option<&[Uuid]>, step: u32) -> Result<Vec<RawLooked>, StoreError> {
        let filter = &search.filter;
        let not_states: Vec<&str> = search.not_states.iter().map(|state| state.as_str()).collect();
        let not_classes: Vec<&str> = search.not_classes.iter().map(|class| class.as_str()).collect();
        let not_effects: Vec<&str> = search.not_effects.iter().map(|effect| effect.as_str()).collect();
        self.store()
            .run_again(|| async {
                let mut db = self.store().begin().await?;
                // A plan for any parameters follows no index. Dispatchers would make one after some steps.
                sqlx::raw_sql("SET LOCAL plan_cache_mode = force_custom_plan").execute(&mut *db).await?;
                let index = match among {
                    Some(_) => Along::default(),
                    None => Along::of(search, self.tenant(), &mut db).await?,
                };
                let rows = sqlx::query_file_as!(
                    RawLooked,
                    "sql/look.sql",
                    index.key,
                    index.task,
                    among,
                    index.conversation,
                    index.class,
                    index.ended_as,
                    index.tenant,
                    index.tool,
                    filter.before.map(|before| before.0),
                    since_id(filter.since),
                    until_id(filter.until),
                    i64::from(step),
                    self.tenant().as_str(),
                    filter.tool.as_deref(),
                    filter.state.map(CallState::as_str),
                    filter.class.map(ErrorClass::as_str),
                    filter.since,
                    filter.until,
                    filter.conversation.as_deref(),
                    filter.key.as_deref(),
                    filter.task.map(|task| task.0),
                    &search.not_tools,
                    &not_states as &[&str],
                    &not_classes as &[&str],
                    search.effect.map(ToolEffect::as_str),
                    &not_effects as &[&str],
                    search.submitted_by.as_deref(),
                    search.agent.as_deref(),
                    &search.not_agents,
                );
                let rows = rows.fetch_all(&mut *db).await?;
                db.commit().await?;
                Ok(rows)
            })
            .await
    }

    /// Returns those of the rows that match so far of which one of these workers ran an attempt, or runs one.
    async fn ran_by(&self, rows: &[RawLooked], workers: &[String]) -> Result<HashSet<Uuid>, StoreError> {
        let ids: Vec<Uuid> = rows.iter().filter(|row| row.matches).map(|row| row.call).collect();
        on_connection!(self.store(), |db| {
            let ran = sqlx::query_scalar!(
                r#"SELECT a.call_id AS "call!" FROM attempts a WHERE a.call_id = ANY ($1) AND a.worker = ANY ($2)
                       UNION
                       SELECT c.id FROM calls c WHERE c.id = ANY ($1) AND c.state = 'running' AND c.worker = ANY ($2)"#,
                &ids,
                workers,
            );
            let ran = ran.fetch_all(&mut *db).await?;
            Ok(ran.into_iter().collect())
        })
    }
}

impl RawLooked {
    fn found(&self) -> FoundCall {
        FoundCall { call: CallId(self.call), submitted_at: self.submitted_at, total_ms: self.total_ms }
    }
}
