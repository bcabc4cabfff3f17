//! Searches of a tenant: in steps that cost the same however few calls match, and whoever's calls are between them.

use std::time::{Duration, Instant};

use redial_proto::{CallId, CallState, ErrorClass, Tenant, ToolEffect};
use uuid::Uuid;

use super::{
    Filter, FoundCall, Inside,
    history::{since_id, until_id},
};
use crate::{StoreError, TenantStore, Time};

/// Calls that one step reads at most.
const STEP: u32 = 2_000;
/// Calls that one step reads if their payloads are compared as well.
const STEP_INSIDE: u32 = 500;

/// Which calls of a tenant to find. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The fields of the call; `tenant` is not looked at.
    pub filter: Filter,
    /// Not of these tools.
    pub not_tools: Vec<String>,
    /// Not in these states.
    pub not_states: Vec<CallState>,
    /// Not ended with these error classes.
    pub not_classes: Vec<ErrorClass>,
    /// Of a task of this declared agent.
    pub agent: Option<String>,
    /// Not of a task of these declared agents.
    pub not_agents: Vec<String>,
    /// Of tools with this effect.
    pub effect: Option<ToolEffect>,
    /// Not with an attempt on these workers.
    pub not_workers: Vec<String>,
    /// What their arguments and results hold.
    pub inside: Inside,
}

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

/// A part of a search.
#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// The calls that match, newest first.
    pub calls: Vec<FoundCall>,
    /// Calls of the tenant that were looked at.
    pub looked: u64,
    /// When the last one of them was submitted.
    pub back_to: Option<Time>,
    /// The next part begins before this call: set it as [`Filter::before`].
    pub last: Option<CallId>,
    /// No call is left.
    pub ended: bool,
}

/// The index that a search follows: only one of these is set.
#[derive(Debug, Default)]
struct Along<'a> {
    key: Option<&'a str>,
    task: Option<Uuid>,
    conversation: Option<&'a str>,
    class: Option<&'a str>,
    ended_as: Option<&'a str>,
    tenant: Option<&'a str>,
    tool: Option<&'a str>,
}

impl<'a> Along<'a> {
    /// Those first that lead to the fewest calls as a rule. Calls of tenant `default` have no index of their own.
    fn of(filter: &'a Filter, tenant: &'a Tenant) -> Self {
        let ended_as = filter.state.filter(|state| state.is_terminal() && *state != CallState::Succeeded);
        let none = Self::default();
        if let Some(key) = &filter.key {
            Self { key: Some(key), ..none }
        } else if let Some(task) = filter.task {
            Self { task: Some(task.0), ..none }
        } else if filter.worker.is_some() {
            none
        } else if let Some(conversation) = &filter.conversation {
            Self { conversation: Some(conversation), ..none }
        } else if let Some(class) = filter.class {
            Self { class: Some(class.as_str()), ..none }
        } else if let Some(state) = ended_as {
            Self { ended_as: Some(state.as_str()), ..none }
        } else if *tenant != Tenant::default() {
            Self { tenant: Some(tenant.as_str()), ..none }
        } else {
            Self { tool: filter.tool.as_deref(), ..none }
        }
    }
}

/// One step.
struct Step {
    rows: Vec<RawLooked>,
    /// The last call of the index that was looked at.
    last: Option<CallId>,
    ended: bool,
}

/// A call that was looked at, as its query returns it.
struct RawLooked {
    call: Uuid,
    submitted_at: Time,
    is_own: bool,
    total_ms: Option<i64>,
    matches: bool,
}

impl TenantStore<'_> {
    /// The next calls that match, as far as the limits let it look.
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
        let is_last = |found: usize| found < step as usize;
        let filter = &search.filter;
        let few = filter.key.is_some() || filter.task.is_some();
        if let Some(worker) = filter.worker.as_ref().filter(|_| !few) {
            let among = self.store().calls_of_worker(worker, filter, step).await?;
            let rows = self.rows(search, Some(&among), step).await?;
            return Ok(Step { rows, last: among.last().copied().map(CallId), ended: is_last(among.len()) });
        }
        let mut rows = self.rows(search, None, step).await?;
        if let Some(worker) = &filter.worker {
            self.only_of_worker(&mut rows, worker).await?;
        }
        let (last, ended) = (rows.last().map(|row| CallId(row.call)), is_last(rows.len()));
        Ok(Step { rows, last, ended })
    }

    async fn rows(&self, search: &Search, among: Option<&[Uuid]>, step: u32) -> Result<Vec<RawLooked>, StoreError> {
        let Search { filter, not_tools, not_states, not_classes, agent, not_agents, effect, not_workers, .. } = search;
        let index = Along::of(filter, self.tenant());
        let not_states: Vec<&str> = not_states.iter().map(|state| state.as_str()).collect();
        let not_classes: Vec<&str> = not_classes.iter().map(|class| class.as_str()).collect();
        self.store()
            .run_again(|| async {
                let mut db = self.store().begin().await?;
                // A plan for any parameters follows no index. Dispatchers would make one after some steps.
                sqlx::raw_sql("SET LOCAL plan_cache_mode = force_custom_plan").execute(&mut *db).await?;
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
                    not_tools,
                    &not_states as &[&str],
                    &not_classes as &[&str],
                    agent.as_deref(),
                    not_agents,
                    effect.map(ToolEffect::as_str),
                    not_workers,
                );
                let rows = rows.fetch_all(&mut *db).await?;
                db.commit().await?;
                Ok(rows)
            })
            .await
    }

    /// Those that the worker did not run do not match.
    async fn only_of_worker(&self, rows: &mut [RawLooked], worker: &str) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = rows.iter().map(|row| row.call).collect();
        let ran: Vec<Uuid> = self
            .store()
            .run_again(|| async {
                let mut db = self.store().checkout().await?;
                let ran = sqlx::query_scalar!(
                    r#"SELECT a.call_id AS "call!" FROM attempts a WHERE a.call_id = ANY ($1) AND a.worker = $2
                       UNION SELECT c.id FROM calls c WHERE c.id = ANY ($1) AND c.state = 'running' AND c.worker = $2"#,
                    &ids,
                    worker,
                );
                let ran = ran.fetch_all(&mut *db).await?;
                Ok(db.done(ran))
            })
            .await?;
        for row in rows {
            row.matches &= ran.contains(&row.call);
        }
        Ok(())
    }
}

impl RawLooked {
    fn found(&self) -> FoundCall {
        FoundCall { call: CallId(self.call), submitted_at: self.submitted_at, total_ms: self.total_ms }
    }
}
