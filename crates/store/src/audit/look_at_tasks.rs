//! Searches of a tenant's tasks: in steps, like those of its calls.

use std::time::Instant;

use redial_proto::{TaskCode, TaskId, TaskState};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Limits, TaskFilter,
    history::{since_id, until_id},
};
use crate::{StoreError, TenantStore, Time};

/// Tasks that one step reads at most.
const STEP: u32 = 2_000;
/// Tasks by which indexes are compared.
const COMPARED: i64 = 200;

/// Which tasks of a tenant to find. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct TaskSearch {
    /// The fields of the task; `tenant` is not looked at.
    pub filter: TaskFilter,
    /// That began with this model.
    pub model: Option<String>,
    pub code: Option<TaskCode>,
    /// The user who submitted them.
    pub submitted_by: Option<String>,
    pub not_states: Vec<TaskState>,
    pub not_agents: Vec<String>,
    /// With this text in their input.
    pub text: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct SearchedTasks {
    /// The tasks that match, newest first.
    pub tasks: Vec<TaskId>,
    /// Tasks of the tenant that were looked at.
    pub looked: u64,
    /// When the last one of them was submitted.
    pub back_to: Option<Time>,
    /// The next part begins before this task: set it as [`TaskFilter::before`].
    pub last: Option<TaskId>,
    /// No task is left.
    pub ended: bool,
}

/// Where a step goes along: one of these is set.
#[derive(Clone, Copy, Debug, Default)]
struct Along<'a> {
    conversation: Option<&'a str>,
    ended_as: Option<&'a str>,
    agent: Option<&'a str>,
    tenant: Option<&'a str>,
}

/// The last of the compared tasks of each index; `None`: it has fewer.
struct Reach {
    ended_as: Option<Uuid>,
    agent: Option<Uuid>,
    tenant: Option<Uuid>,
}

struct RawLooked {
    task: Uuid,
    submitted_at: Time,
    is_own: bool,
    matches: bool,
}

impl TenantStore<'_> {
    /// Returns the next tasks that match, as far as the limits let it look.
    pub async fn search_tasks(&self, search: &TaskSearch, limits: Limits) -> Result<SearchedTasks, StoreError> {
        let (began, mut searched) = (Instant::now(), SearchedTasks::default());
        let mut search = search.clone();
        let open = self.open_tasks(&search).await?;
        while !searched.ended
            && searched.tasks.len() < limits.matches
            && searched.looked < limits.looked
            && (searched.last.is_none() || began.elapsed() < limits.time)
        {
            let rows = self.look_at_tasks(&search, open.as_deref()).await?;
            let room = limits.matches - searched.tasks.len();
            let mut found: Vec<TaskId> = rows.iter().filter(|row| row.matches).map(|row| TaskId(row.task)).collect();
            let cut = found.len() > room;
            found.truncate(room);
            let last = if cut { found.last().copied() } else { rows.last().map(|row| TaskId(row.task)) };
            for row in rows.iter().filter(|row| row.is_own && last.is_none_or(|last| row.task >= last.0)) {
                searched.looked += 1;
                searched.back_to = Some(row.submitted_at);
            }
            searched.tasks.extend(found);
            searched.ended = !cut && rows.len() < STEP as usize;
            searched.last = last.or(searched.last);
            search.filter.before = searched.last.or(search.filter.before);
        }
        Ok(searched)
    }

    /// Returns the tasks that run or wait, if only such are searched and they are few.
    async fn open_tasks(&self, search: &TaskSearch) -> Result<Option<Vec<Uuid>>, StoreError> {
        let state = search.filter.state.filter(|state| !state.is_terminal());
        let Some(state) = state.filter(|_| search.filter.conversation.is_none()) else { return Ok(None) };
        let tasks: Vec<Uuid> = on_connection!(self.store(), |db| {
            let tasks = sqlx::query_scalar!(
                r#"(SELECT id AS "id!" FROM tasks WHERE tenant = $1 AND state = 'running' AND $2 = 'running' LIMIT $3)
                       UNION ALL
                       (SELECT id FROM tasks WHERE tenant = $1 AND state = 'waiting' AND $2 = 'waiting' LIMIT $3)"#,
                self.tenant().as_str(),
                state.as_str(),
                i64::from(STEP) + 1,
            );
            tasks.fetch_all(db).await
        })?;
        Ok(Some(tasks).filter(|tasks| tasks.len() <= STEP as usize))
    }

    async fn look_at_tasks(&self, search: &TaskSearch, open: Option<&[Uuid]>) -> Result<Vec<RawLooked>, StoreError> {
        let filter = &search.filter;
        let not_states: Vec<&str> = search.not_states.iter().map(|state| state.as_str()).collect();
        self.store()
            .run_again(|| async {
                let mut db = self.store().begin().await?;
                sqlx::raw_sql("SET LOCAL plan_cache_mode = force_custom_plan").execute(&mut *db).await?;
                let index = match open {
                    Some(_) => Along::default(),
                    None => Along::of(search, self.tenant().as_str(), &mut db).await?,
                };
                let rows = sqlx::query_file_as!(
                    RawLooked,
                    "sql/look_at_tasks.sql",
                    open,
                    index.conversation,
                    index.ended_as,
                    index.agent,
                    index.tenant,
                    filter.before.map(|before| before.0),
                    since_id(filter.since),
                    until_id(filter.until),
                    i64::from(STEP),
                    self.tenant().as_str(),
                    filter.conversation.as_deref(),
                    filter.state.map(TaskState::as_str),
                    filter.agent.as_deref(),
                    search.model.as_deref(),
                    search.code.map(TaskCode::as_str),
                    search.submitted_by.as_deref(),
                    filter.since,
                    filter.until,
                    &not_states as &[&str],
                    &search.not_agents,
                    search.text.as_deref(),
                );
                let rows = rows.fetch_all(&mut *db).await?;
                db.commit().await?;
                Ok(rows)
            })
            .await
    }
}

impl<'a> Along<'a> {
    /// Returns the index on which as many tasks reach furthest back.
    async fn of(search: &'a TaskSearch, tenant: &'a str, db: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let none = Self::default();
        let filter = &search.filter;
        if let Some(conversation) = &filter.conversation {
            return Ok(Self { conversation: Some(conversation), ..none });
        }
        let (ended_as, agent) = (search.ended_as(), filter.agent.as_deref());
        if ended_as.is_none() && agent.is_none() {
            return Ok(Self { tenant: Some(tenant), ..none });
        }
        let reach = sqlx::query_file_as!(
            Reach,
            "sql/reach_of_tasks.sql",
            ended_as,
            agent,
            tenant,
            filter.before.map(|before| before.0),
            since_id(filter.since),
            until_id(filter.until),
            COMPARED - 1,
        );
        let reach = reach.fetch_one(db).await?;
        let each = [
            (ended_as.map(|state| Self { ended_as: Some(state), ..none }), reach.ended_as),
            (agent.map(|agent| Self { agent: Some(agent), ..none }), reach.agent),
            (Some(Self { tenant: Some(tenant), ..none }), reach.tenant),
        ];
        // What ends soonest comes first: `None` is less than any id.
        let best = each.into_iter().filter_map(|(along, last)| Some((along?, last))).min_by_key(|(_, last)| *last);
        Ok(best.map_or(none, |(along, _)| along))
    }
}

impl TaskSearch {
    /// Returns the state with an index that all tasks have which match. Only tasks with an answer end otherwise than
    /// failed or cancelled.
    fn ended_as(&self) -> Option<&'static str> {
        let of_code = self.code.and_then(|code| match code {
            TaskCode::Answered | TaskCode::AnswerCutOff => None,
            TaskCode::Cancelled => Some(TaskState::Cancelled),
            _ => Some(TaskState::Failed),
        });
        let state = self.filter.state.or(of_code);
        state.filter(|state| matches!(state, TaskState::Failed | TaskState::Cancelled)).map(TaskState::as_str)
    }
}
