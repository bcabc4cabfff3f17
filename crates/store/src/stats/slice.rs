//! Reads calls that have ended, and counts them.

use std::collections::{BTreeSet, HashMap};

use redial_proto::{ErrorClass, FieldError, Repair, TurnUsage, limits::shorten, turn::model_name};
use serde::{Deserialize, de::DeserializeOwned};
use sqlx::PgConnection;
use uuid::Uuid;

use super::tally::{
    AttemptKey, CallKey, CallSums, ModelKey, ModelSums, PlaceKey, Tally, UNKNOWN_TOOL, UsageSums, What, hour_of,
};
use crate::Time;

/// Answers of models that are read at once: each may have 256 KiB.
const REPLIES: usize = 64;
/// Places of a call that are counted.
const PLACES: usize = 20;
/// Bytes of a pointer and of a rule that are kept.
const POINTER: usize = 120;
const RULE: usize = 40;

/// The classes of failures that a model can correct. `redial_engine::route` decides that for tasks; a test compares both.
const CORRECTABLE: [ErrorClass; 9] = [
    ErrorClass::MalformedArguments,
    ErrorClass::UnknownTool,
    ErrorClass::InvalidArguments,
    ErrorClass::RepeatedCall,
    ErrorClass::BusinessRule,
    ErrorClass::OutputInvalid,
    ErrorClass::OutputTooLarge,
    ErrorClass::Rejected,
    ErrorClass::ToolFailed,
];

/// Whether a model that is told of a failure of this class may correct it, and so whether its next call counts as a correction.
pub fn is_correctable(class: ErrorClass) -> bool {
    CORRECTABLE.contains(&class)
}

/// An ended call.
struct Row {
    id: Uuid,
    finished_at: Time,
    tenant: String,
    tool: String,
    state: String,
    class: Option<String>,
    attempts: i32,
    total_ms: i64,
    corrections: i32,
    wrong_turns: i32,
    /// -1: it belongs to no task.
    call_index: i32,
    is_repaired: bool,
    model_tool: Option<String>,
    agent: Option<String>,
    repairs: Option<String>,
    details: Option<String>,
}

/// Counts calls that have ended; nothing of those that are not on record any more.
pub(super) async fn read(db: &mut PgConnection, calls: &[Uuid]) -> Result<Tally, sqlx::Error> {
    let correctable = CORRECTABLE.map(|class| class.as_str().to_owned());
    let rows = sqlx::query_file_as!(Row, "sql/stats_slice.sql", calls, &correctable).fetch_all(&mut *db).await?;
    let mut tally = Tally::default();
    let usages = usages(db, &rows).await?;
    for row in &rows {
        let sums = row.sums(usages.get(&row.id));
        if row.call_index >= 0 {
            tally.models.entry(row.model_key()).or_default().add(&row.model_sums(&sums));
        }
        for key in row.places() {
            *tally.places.entry(key).or_default() += 1;
        }
        tally.calls.entry(row.key()).or_default().add(&sums);
    }
    count_attempts(db, &rows, &mut tally).await?;
    Ok(tally)
}

/// What the models' answers cost, by call.
async fn usages(db: &mut PgConnection, rows: &[Row]) -> Result<HashMap<Uuid, UsageSums>, sqlx::Error> {
    let turns: Vec<Uuid> = rows.iter().filter(|row| row.is_answer()).map(|row| row.id).collect();
    let mut usages = HashMap::with_capacity(turns.len());
    for turns in turns.chunks(REPLIES) {
        let replies = sqlx::query_file!("sql/stats_replies.sql", turns).fetch_all(&mut *db).await?;
        usages
            .extend(replies.into_iter().map(|row| (row.call_id, UsageSums::of(row.reply.as_deref().and_then(usage)))));
    }
    Ok(usages)
}

/// The usage that an answer tells; `None` if it is no answer that this version can read.
fn usage(reply: &str) -> Option<TurnUsage> {
    /// Only what is needed of a [`redial_proto::TurnReply`].
    #[derive(Deserialize)]
    struct Reply {
        #[serde(default)]
        usage: TurnUsage,
    }
    serde_json::from_str(reply).ok().map(|reply: Reply| reply.usage)
}

/// A list of a column; nothing of one that this version cannot read.
fn list<T: DeserializeOwned>(json: Option<&str>) -> Vec<T> {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// A pointer with `*` for each index, at most [`POINTER`] bytes of it.
fn folded(pointer: &str) -> String {
    let is_index = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = pointer.split('/').map(|part| if is_index(&part) { "*" } else { part }).collect();
    shorten(&parts.join("/").replace('\0', "\u{fffd}"), POINTER)
}

async fn count_attempts(db: &mut PgConnection, rows: &[Row], tally: &mut Tally) -> Result<(), sqlx::Error> {
    let tried: HashMap<Uuid, &Row> = rows.iter().filter(|row| row.attempts > 0).map(|row| (row.id, row)).collect();
    let ids: Vec<Uuid> = tried.keys().copied().collect();
    for attempt in sqlx::query_file!("sql/stats_attempts.sql", &ids).fetch_all(db).await? {
        let Some(row) = tried.get(&attempt.call_id) else { continue };
        let CallKey { hour, tenant, tool, .. } = row.key();
        let sums = tally.attempts.entry(AttemptKey { hour, tenant, worker: attempt.worker, tool }).or_default();
        sums.attempts += 1;
        sums.failed += u64::from(attempt.failed);
        if let Some(ms) = attempt.duration_ms {
            sums.durations.add(ms);
        }
    }
    Ok(())
}

impl Row {
    fn key(&self) -> CallKey {
        let class = self.class.clone().unwrap_or_default();
        let unknown = class == ErrorClass::UnknownTool.as_str();
        CallKey {
            hour: hour_of(self.finished_at),
            tenant: self.tenant.clone(),
            tool: if unknown { UNKNOWN_TOOL.to_owned() } else { self.tool.clone() },
            state: self.state.clone(),
            class,
        }
    }

    fn model_key(&self) -> ModelKey {
        let CallKey { hour, tenant, tool, .. } = self.key();
        let is_turn = self.call_index == 0;
        let model = if is_turn { Some(self.tool.as_str()) } else { self.model_tool.as_deref() };
        let model = model.and_then(model_name).unwrap_or_default().to_owned();
        let agent = self.agent.clone().unwrap_or_default();
        ModelKey { hour, tenant, agent, model, tool: if is_turn { String::new() } else { tool } }
    }

    /// What a call of a task adds to the figures of its model. One that ended for another reason, as cancelled, lost or while its tool was
    /// down, says nothing about its arguments.
    fn model_sums(&self, calls: &CallSums) -> ModelSums {
        let mut sums = ModelSums { calls: 1, usage: calls.usage, ..ModelSums::default() };
        if self.call_index == 0 {
            return sums;
        }
        // After a tool that does not exist, the first call of the next turn corrects, whatever its tool.
        let turns = self.wrong_turns.max(self.corrections.min(1));
        let is_correction = turns > 0;
        let is_wrong = self.class.as_deref().and_then(|class| class.parse().ok()).is_some_and(is_correctable);
        if !is_wrong && self.state != "succeeded" {
            return sums;
        }
        let slot = match (is_wrong, is_correction, turns) {
            (true, false, _) => &mut sums.wrong,
            (true, true, _) => return sums,
            (false, false, _) if self.is_repaired => &mut sums.repaired,
            (false, false, _) => &mut sums.right_at_once,
            (false, true, ..=1) => &mut sums.corrected[0],
            (false, true, 2) => &mut sums.corrected[1],
            (false, true, 3..) => &mut sums.corrected[2],
        };
        *slot = 1;
        sums
    }

    /// The places in its arguments that broke a rule or were repaired, each once.
    fn places(&self) -> BTreeSet<PlaceKey> {
        let CallKey { hour, tenant, tool, .. } = self.key();
        let key = |what, pointer: &str, rule: String| PlaceKey {
            hour,
            tenant: tenant.clone(),
            tool: tool.clone(),
            what,
            pointer: folded(pointer),
            rule: shorten(&rule, RULE),
        };
        let errors: Vec<FieldError> = list(self.details.as_deref());
        let repairs: Vec<Repair> = list(self.repairs.as_deref());
        let errors = errors.iter().take(PLACES).map(|error| key(What::Error, &error.path, error.rule.clone()));
        let repairs = repairs.iter().take(PLACES);
        let repairs = repairs
            .map(|repair| key(What::Repair, repair.path.as_deref().unwrap_or_default(), repair.kind.to_string()));
        errors.chain(repairs).collect()
    }

    /// A model answered.
    fn is_answer(&self) -> bool {
        self.state == "succeeded" && model_name(&self.tool).is_some()
    }

    fn sums(&self, usage: Option<&UsageSums>) -> CallSums {
        let count = |number: i32| u64::try_from(number).unwrap_or(0);
        let mut sums = CallSums {
            calls: 1,
            retries: count(self.attempts - 1),
            corrections: count(self.corrections),
            ..CallSums::default()
        };
        if self.attempts > 0 {
            sums.durations.add(self.total_ms);
        }
        if self.is_answer() {
            sums.usage = usage.copied().unwrap_or_else(|| UsageSums::of(None));
        }
        sums
    }
}
