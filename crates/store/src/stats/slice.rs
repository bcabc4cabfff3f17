//! Reads calls that have ended, and counts them.

use std::collections::{BTreeSet, HashMap};

use redial_proto::{ErrorClass, FieldError, Repair, TurnUsage, limits::shorten, turn::model_name};
use serde::{Deserialize, de::DeserializeOwned};
use sqlx::PgConnection;
use uuid::Uuid;

use super::tally::{Key, Kind, Sums, Tally, UNKNOWN_TOOL, UsageSums, What, hour_of};
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

/// True if a model that is told of a failure of this class may correct it, and so its next call counts as a correction.
pub fn is_correctable(class: ErrorClass) -> bool {
    CORRECTABLE.contains(&class)
}

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
        let usage = row.usage(usages.get(&row.id));
        if row.call_index >= 0 {
            tally.entry(row.model_key()).or_default().add(&row.model_sums(usage));
        }
        for key in row.places() {
            tally.entry(key).or_default().add(&Sums::new([1]));
        }
        tally.entry(row.key()).or_default().add(&row.sums(usage));
    }
    count_attempts(db, &rows, &mut tally).await?;
    Ok(tally)
}

/// Reads what the models' answers cost, by call.
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

/// Reads the usage that an answer tells; `None` if it is no answer that this version can read.
fn usage(reply: &str) -> Option<TurnUsage> {
    /// Only what is needed of a [`redial_proto::TurnReply`].
    #[derive(Deserialize)]
    struct Reply {
        #[serde(default)]
        usage: TurnUsage,
    }
    serde_json::from_str(reply).ok().map(|reply: Reply| reply.usage)
}

/// Reads a list of a column; nothing of one that this version cannot read.
fn list<T: DeserializeOwned>(json: Option<&str>) -> Vec<T> {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Folds a pointer: `*` for each index, at most [`POINTER`] bytes of it.
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
        let mut sums = Sums::new([1, attempt.failed.into()]);
        if let Some(ms) = attempt.duration_ms {
            sums.durations.add(ms);
        }
        let names = [attempt.worker, String::new(), String::new()];
        tally.entry(Key { kind: Kind::Attempt, names, ..row.key() }).or_default().add(&sums);
    }
    Ok(())
}

impl Row {
    fn key(&self) -> Key {
        let class = self.class.clone().unwrap_or_default();
        let unknown = class == ErrorClass::UnknownTool.as_str();
        Key {
            kind: Kind::Call,
            hour: hour_of(self.finished_at),
            tenant: self.tenant.clone(),
            tool: if unknown { UNKNOWN_TOOL.to_owned() } else { self.tool.clone() },
            names: [self.state.clone(), class, String::new()],
        }
    }

    fn model_key(&self) -> Key {
        let key = self.key();
        let is_turn = self.call_index == 0;
        let model = if is_turn { Some(self.tool.as_str()) } else { self.model_tool.as_deref() };
        let model = model.and_then(model_name).unwrap_or_default().to_owned();
        let agent = self.agent.clone().unwrap_or_default();
        let tool = if is_turn { String::new() } else { key.tool };
        Key { kind: Kind::Model, tool, names: [agent, model, String::new()], ..key }
    }

    /// Counts what a call of a task adds to the figures of its model. One that ended for another reason, as cancelled,
    /// lost or while its tool was down, says nothing about its arguments.
    fn model_sums(&self, usage: UsageSums) -> Sums {
        // Calls, right at once, repaired, wrong, and corrected in one, two, and three or more turns.
        let mut counts = [1, 0, 0, 0, 0, 0, 0];
        if let Some(position) = self.rightness() {
            counts[position] = 1;
        }
        Sums::new([&counts[..], &usage.counts()].concat())
    }

    /// Returns the position of what a call counts as, besides as a call.
    fn rightness(&self) -> Option<usize> {
        if self.call_index == 0 {
            return None;
        }
        // After a tool that does not exist, the first call of the next turn corrects, whatever its tool.
        let turns = self.wrong_turns.max(self.corrections.min(1));
        let is_correction = turns > 0;
        let is_wrong = self.class.as_deref().and_then(|class| class.parse().ok()).is_some_and(is_correctable);
        if !is_wrong && self.state != "succeeded" {
            return None;
        }
        match (is_wrong, is_correction, turns) {
            (true, false, _) => Some(3),
            (true, true, _) => None,
            (false, false, _) => Some(if self.is_repaired { 2 } else { 1 }),
            (false, true, ..=1) => Some(4),
            (false, true, 2) => Some(5),
            (false, true, 3..) => Some(6),
        }
    }

    /// Returns the places in its arguments that broke a rule or were repaired, each once.
    fn places(&self) -> BTreeSet<Key> {
        let key = |what: What, pointer: &str, rule: String| {
            let names = [what.as_str().to_owned(), folded(pointer), shorten(&rule, RULE)];
            Key { kind: Kind::Place, names, ..self.key() }
        };
        let errors: Vec<FieldError> = list(self.details.as_deref());
        let repairs: Vec<Repair> = list(self.repairs.as_deref());
        let errors = errors.iter().take(PLACES).map(|error| key(What::Error, &error.path, error.rule.clone()));
        let repairs = repairs.iter().take(PLACES);
        let repairs = repairs
            .map(|repair| key(What::Repair, repair.path.as_deref().unwrap_or_default(), repair.kind.to_string()));
        errors.chain(repairs).collect()
    }

    /// True if a model answered.
    fn is_answer(&self) -> bool {
        self.state == "succeeded" && model_name(&self.tool).is_some()
    }

    fn usage(&self, known: Option<&UsageSums>) -> UsageSums {
        let answer = || known.copied().unwrap_or_else(|| UsageSums::of(None));
        if self.is_answer() { answer() } else { UsageSums::default() }
    }

    fn sums(&self, usage: UsageSums) -> Sums {
        let count = |number: i32| u64::try_from(number).unwrap_or(0);
        let counts = [1, count(self.attempts - 1), count(self.corrections)];
        let mut sums = Sums::new([&counts[..], &usage.counts()].concat());
        if self.attempts > 0 {
            sums.durations.add(self.total_ms);
        }
        sums
    }
}
