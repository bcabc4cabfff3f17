//! Calls with their attempts and late reports.

use std::collections::HashMap;

use chrono::TimeDelta;
use redial_api::{CallItem, LateReport};
use redial_proto::{CallId, CallState, TaskId, WaitReason, Waiting, turn};
use redial_records::turn::Missing;
use uuid::Uuid;

use super::{AttemptRecord, CallAudit, history::known, raw};
use crate::{
    Store, StoreError, Time,
    columns::{distinct, uint},
    tasks::{AskedTurn, TurnRoom, Unexpanded, task_call},
};

pub(super) struct RawRecord {
    pub(super) call: Uuid,
    pub(super) tool: String,
    pub(super) state: String,
    pub(super) class: Option<String>,
    pub(super) message: Option<String>,
    pub(super) attempts: i32,
    pub(super) submitted_at: Time,
    pub(super) finished_at: Option<Time>,
    pub(super) total_ms: Option<i64>,
    pub(super) next_attempt_at: Option<Time>,
    pub(super) conversation: Option<String>,
    pub(super) key: Option<String>,
    pub(super) last_worker: Option<String>,
    pub(super) tenant: String,
    pub(super) submitted_by: Option<String>,
    pub(super) pool: String,
    pub(super) effect: String,
    pub(super) redrive_of: Option<Uuid>,
    pub(super) redriven_as: Option<Uuid>,
    pub(super) deadline_at: Time,
    pub(super) cancel_requested: bool,
    pub(super) publish_no: i32,
    pub(super) arguments: String,
    pub(super) details: Option<String>,
    pub(super) repairs: Option<String>,
    pub(super) undeclared: Option<String>,
    pub(super) help: Option<String>,
    pub(super) task: Option<Uuid>,
    pub(super) turn: Option<i32>,
    pub(super) call_index: Option<i32>,
    pub(super) waits_for: Option<String>,
    pub(super) waits_since: Option<Time>,
    pub(super) late: bool,
}

struct RawAttempt {
    call: Uuid,
    attempt: i32,
    worker: String,
    started_at: Time,
    ended_at: Option<Time>,
    duration_ms: Option<i64>,
    outcome: String,
    class: Option<String>,
    message: Option<String>,
    retry_at: Option<Time>,
    unheard_since: Option<Time>,
    details: Option<String>,
    output: Option<String>,
}

/// By their calls.
type Attempts = HashMap<Uuid, Vec<AttemptRecord>>;

/// The retry of a call that waits for a token or for its time.
struct HeldRetry {
    call: Uuid,
    failing_since: Option<Time>,
    recovering_since: Option<Time>,
    per_second: f64,
    before: i64,
    until_about: Time,
}

/// A retry that has its turn so long after it is due is held back.
const HELD: TimeDelta = TimeDelta::seconds(1);
/// More retries than this are not counted.
const COUNTED: i64 = 100_000;

impl Store {
    /// Returns one call with all that is known of it.
    pub async fn record(&self, id: CallId) -> Result<Option<CallAudit>, StoreError> {
        Ok(self.records_of(&[id]).await?.pop())
    }

    /// Returns calls with all that is known of them, in no order; those that are not on record are left out.
    pub async fn records_of(&self, ids: &[CallId]) -> Result<Vec<CallAudit>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let heads =
            on_connection!(self, |db| sqlx::query_file_as!(RawRecord, "sql/records.sql", &ids).fetch_all(db).await)?;
        self.records(self.with_whole_turns(heads).await?).await
    }

    /// Returns calls that have ended, in a fraction of the time; others are left out.
    pub async fn records_of_ended(&self, ids: &[CallId]) -> Result<Vec<CallAudit>, StoreError> {
        let ids = distinct(ids);
        let heads = async {
            on_connection!(self, |db| {
                sqlx::query_file_as!(RawRecord, "sql/ended_records.sql", &ids).fetch_all(db).await
            })
        };
        let attempts = async {
            on_connection!(self, |db| {
                sqlx::query_file_as!(RawAttempt, "sql/ended_attempts.sql", &ids).fetch_all(db).await
            })
        };
        let (heads, attempts) = tokio::try_join!(heads, attempts)?;
        self.with_attempts(self.with_whole_turns(heads).await?, by_call(attempts)?).await
    }

    /// Puts together what models were asked.
    async fn with_whole_turns(&self, mut heads: Vec<RawRecord>) -> Result<Vec<RawRecord>, StoreError> {
        let turns: Vec<(usize, AskedTurn)> =
            heads.iter().enumerate().filter_map(|(n, head)| Some((n, head.asked_turn()?))).collect();
        let (positions, turns): (Vec<usize>, Vec<AskedTurn>) = turns.into_iter().unzip();
        for (n, expanded) in positions.into_iter().zip(self.expand_turns(&turns, TurnRoom::ALL).await?) {
            match expanded {
                Ok(expanded) if expanded.is_exact => heads[n].arguments = expanded.request,
                // As it is on record, then: what is shown is what was sent, or what is known of it.
                Ok(_) => {
                    tracing::warn!(call = %heads[n].call, "Found a turn that cannot be put together to the letter");
                }
                Err(Unexpanded::Missing(Missing(missing))) => {
                    tracing::debug!(call = %heads[n].call, missing, "Found a turn whose parts are not on record any more");
                }
                Err(Unexpanded::NoRoom) => {}
            }
        }
        Ok(heads)
    }

    /// Adds to calls their attempts and late reports.
    pub(super) async fn records(&self, heads: Vec<RawRecord>) -> Result<Vec<CallAudit>, StoreError> {
        if heads.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = heads.iter().map(|head| head.call).collect();
        let attempts = self.attempts(&ids).await?;
        self.with_attempts(heads, attempts).await
    }

    async fn with_attempts(&self, heads: Vec<RawRecord>, mut attempts: Attempts) -> Result<Vec<CallAudit>, StoreError> {
        let late: Vec<Uuid> = heads.iter().filter(|head| head.late).map(|head| head.call).collect();
        let mut late = self.late_reports(&late).await?;
        let may_be_held = |head: &&RawRecord| {
            head.waits_for.as_deref() == Some(WaitReason::Retries.as_str())
                || head.state == CallState::RetryWait.as_str()
        };
        let held: Vec<Uuid> = heads.iter().filter(may_be_held).map(|head| head.call).collect();
        let mut held = self.held_retries(&held).await?;
        // Asked only if a call waits for a worker.
        let last_seen = if heads.iter().any(|head| head.waits_for.as_deref() == Some(WaitReason::Worker.as_str())) {
            self.tools_last_seen().await?
        } else {
            HashMap::new()
        };
        heads
            .into_iter()
            .map(|head| {
                let id = head.call;
                let seen = last_seen.get(&head.tool).copied();
                head.whole(
                    seen,
                    held.remove(&id),
                    attempts.remove(&id).unwrap_or_default(),
                    late.remove(&id).unwrap_or_default(),
                )
            })
            .collect()
    }

    async fn held_retries(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, HeldRetry>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let held = on_connection!(self, |db| sqlx::query_file_as!(HeldRetry, "sql/held_retries.sql", ids)
            .fetch_all(db)
            .await)?;
        Ok(held.into_iter().map(|one| (one.call, one)).collect())
    }

    async fn attempts(&self, ids: &[Uuid]) -> Result<Attempts, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_as!(
                RawAttempt,
                r#"SELECT call AS "call!", attempt AS "attempt!", worker AS "worker!", started_at AS "started_at!",
                              ended_at, duration_ms, outcome AS "outcome!", class, message, retry_at, unheard_since,
                              details::text, output::text
                       FROM attempt_history WHERE call = ANY ($1) ORDER BY attempt"#,
                ids,
            )
            .fetch_all(db)
            .await
        })?;
        by_call(rows)
    }

    async fn late_reports(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, Vec<LateReport>>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = on_connection!(self, |db| {
            sqlx::query!(
                r#"SELECT call_id, attempt, worker, received_at, COALESCE(class, 'succeeded') AS "outcome!"
                       FROM late_reports WHERE call_id = ANY ($1) ORDER BY received_at"#,
                ids,
            )
            .fetch_all(db)
            .await
        })?;
        let mut late = HashMap::<Uuid, Vec<LateReport>>::new();
        for row in rows {
            late.entry(row.call_id).or_default().push(LateReport {
                attempt: row.attempt,
                worker: row.worker,
                received_at: row.received_at,
                outcome: row.outcome,
            });
        }
        Ok(late)
    }
}

fn by_call(rows: Vec<RawAttempt>) -> Result<Attempts, StoreError> {
    let mut attempts = Attempts::new();
    for row in rows {
        attempts.entry(row.call).or_default().push(AttemptRecord {
            attempt: row.attempt,
            worker: row.worker,
            started_at: row.started_at,
            ended_at: row.ended_at,
            duration_ms: row.duration_ms,
            outcome: row.outcome,
            class: row.class,
            message: row.message,
            retry_at: row.retry_at,
            unheard_since: row.unheard_since,
            details: row.details.map(raw).transpose()?,
            output: row.output.map(raw).transpose()?,
        });
    }
    Ok(attempts)
}

impl RawRecord {
    /// True if it asks a model.
    pub(super) fn is_turn(&self) -> bool {
        self.pool == turn::POOL
    }

    fn asked_turn(&self) -> Option<AskedTurn> {
        Some(AskedTurn {
            tenant: self.tenant.clone(),
            conversation: self.conversation.clone().filter(|_| self.is_turn())?,
            task: TaskId(self.task?),
            arguments: self.arguments.clone(),
        })
    }

    fn whole(
        self,
        worker_last_seen_at: Option<Time>,
        held: Option<HeldRetry>,
        attempts_made: Vec<AttemptRecord>,
        late_reports: Vec<LateReport>,
    ) -> Result<CallAudit, StoreError> {
        // A retry that is not due yet waits for its time, unless it will have to wait for longer.
        let due_at = self.next_attempt_at;
        let held = held.filter(|held| due_at.is_none_or(|due| held.until_about - due > HELD));
        let waits = self.waits(worker_last_seen_at, held.as_ref())?;
        let next_attempt_at = self.next_attempt(held.as_ref());
        let line = CallItem {
            call: CallId(self.call),
            tool: self.tool,
            state: CallState::shown(&self.state),
            class: known(self.class.as_deref()),
            message: self.message,
            attempts: uint(self.attempts),
            submitted_at: self.submitted_at,
            finished_at: self.finished_at,
            total_ms: self.total_ms,
            next_attempt_at,
            conversation: self.conversation,
            key: self.key,
            last_worker: self.last_worker,
            redriven_as: self.redriven_as.map(CallId),
        };
        Ok(CallAudit {
            waits,
            line,
            task: task_call(self.task, self.turn, self.call_index),
            tenant: self.tenant,
            submitted_by: self.submitted_by,
            pool: self.pool,
            effect: self.effect,
            redrive_of: self.redrive_of,
            deadline_at: self.deadline_at,
            cancel_requested: self.cancel_requested,
            publish_no: self.publish_no,
            arguments: raw(self.arguments)?,
            details: self.details.map(raw).transpose()?,
            repairs: self.repairs.map(raw).transpose()?,
            undeclared: self.undeclared.map(raw).transpose()?,
            help: self.help.map(raw).transpose()?,
            attempts_made,
            late_reports,
        })
    }
    /// Returns what the call waits for, with what is known of its retry if that is held back.
    fn waits(
        &self,
        worker_last_seen_at: Option<Time>,
        held: Option<&HeldRetry>,
    ) -> Result<Option<Waiting>, StoreError> {
        let waits = self.waits_for.as_deref().map(str::parse).transpose().map_err(StoreError::BadData)?;
        let (reason, since) = match (waits.zip(self.waits_since), self.next_attempt_at.zip(held)) {
            (Some(waits), _) => waits,
            (None, Some((due, _))) => (WaitReason::Retries, due),
            (None, None) => return Ok(None),
        };
        Ok(Some(Waiting {
            reason,
            since,
            worker_last_seen_at: worker_last_seen_at.filter(|_| reason == WaitReason::Worker),
            failing_since: held.and_then(|held| held.failing_since),
            recovering_since: held.and_then(|held| held.recovering_since),
            retries_per_second: held.map(|held| held.per_second),
            retries_before: held.filter(|held| held.before <= COUNTED).and_then(|held| held.before.try_into().ok()),
            until_about: held.and_then(HeldRetry::until_about),
        }))
    }

    /// Returns when the next attempt may begin; `None` also if too many retries are before it.
    fn next_attempt(&self, held: Option<&HeldRetry>) -> Option<Time> {
        match held {
            Some(held) => held.until_about(),
            None => self.next_attempt_at,
        }
    }
}

impl HeldRetry {
    /// Returns when it has its turn; `None` if too many are before it.
    fn until_about(&self) -> Option<Time> {
        (self.before <= COUNTED).then_some(self.until_about)
    }
}
