//! The documented questions, one a line. Each must find its rows by an index.

use std::cmp::Reverse;

use chrono::TimeDelta;
use redial_proto::{CallId, CallState, ErrorClass, TaskId, TaskState};
use redial_store::{
    Store, StoreError,
    audit::{Filter, FoundCall, TaskFilter, Texts},
    stats::{By, StatsQuestion},
};

use uuid::Uuid;

use super::fill::Filled;

/// A question and its name.
pub(crate) struct Question {
    pub(crate) name: &'static str,
    ask: Ask,
}

/// What is asked.
enum Ask {
    Calls(Filter),
    /// One step of a search for a text, newest first.
    Search(Texts),
    /// One step of a look for the slowest.
    Slowest,
    /// Which call or task is meant by the first digits of this id, and how many are needed.
    ShortId(CallId),
    Tasks(TaskFilter),
    Call(CallId),
    TaskCalls(TaskId),
    Tools,
    Workers,
    DeadLetters,
    Stats(StatsQuestion),
}

/// Entries of a list, as in `redial history`.
const PAGE: u32 = 50;
/// Calls that `redial history` looks at in one step of a search, and of a look for the slowest.
const STEP: u32 = 1_000;
const STEP_OF_TIMES: u32 = 10_000;

/// Those about single calls and tasks; and statistics that are not rolled up yet.
pub(crate) fn about_calls(filled: &Filled) -> Vec<Question> {
    let any = Filter::default;
    let task = TaskFilter::default;
    let text = |text: &str| Some(text.to_owned());
    // The worker of the calls in the middle, see `fill_varied_calls.sql`.
    let worker = format!("worker-{}-3", filled.calls / 2 / 50_000);
    let by_worker = || Filter { worker: text(&worker), ..any() };
    let (early, middle) = (Some(filled.now - TimeDelta::hours(500)), filled.calls / 2 / 10 * 10);
    named([
        ("history", Ask::Calls(any())),
        ("history --before CALL", Ask::Calls(Filter { before: Some(filled.call), ..any() })),
        ("history --since", Ask::Calls(Filter { since: early, ..any() })),
        ("history --tool, one of many", Ask::Calls(Filter { tool: text("tool_7"), ..any() })),
        ("history --tool, a rare one", Ask::Calls(Filter { tool: text("tool_rare"), ..any() })),
        ("history --tool, of none", Ask::Calls(Filter { tool: text("no_such"), ..any() })),
        ("history --state failed", Ask::Calls(Filter { state: Some(CallState::Failed), ..any() })),
        ("history --state unknown", Ask::Calls(Filter { state: Some(CallState::Unknown), ..any() })),
        ("history --state refused", Ask::Calls(Filter { state: Some(CallState::Refused), ..any() })),
        ("history --state ready", Ask::Calls(Filter { state: Some(CallState::Ready), ..any() })),
        ("history --state succeeded", Ask::Calls(Filter { state: Some(CallState::Succeeded), ..any() })),
        ("history --class, a rare one", Ask::Calls(Filter { class: Some(ErrorClass::Auth), ..any() })),
        ("history --class, a common one", Ask::Calls(Filter { class: Some(ErrorClass::Unavailable), ..any() })),
        (
            "history --conversation",
            Ask::Calls(Filter { conversation: Some(format!("conversation {}", middle / 10)), ..any() }),
        ),
        ("history --key", Ask::Calls(Filter { key: Some(format!("key {}", middle / 20 * 20 + 10)), ..any() })),
        ("history --task", Ask::Calls(Filter { task: Some(filled.task), ..any() })),
        ("history --until", Ask::Calls(Filter { until: early, ..any() })),
        ("history --worker", Ask::Calls(by_worker())),
        ("history --worker --state failed", Ask::Calls(Filter { state: Some(CallState::Failed), ..by_worker() })),
        ("history --model", Ask::Calls(Filter { tool: text("model-small"), ..any() })),
        (
            "history --argument, one step",
            Ask::Search(Texts { arguments: vec!["Paris".to_owned()], ..Texts::default() }),
        ),
        ("history --output, one step", Ask::Search(Texts { output: vec!["CA9".to_owned()], ..Texts::default() })),
        (
            "history --contains, one step",
            Ask::Search(Texts { anywhere: vec!["nowhere".to_owned()], ..Texts::default() }),
        ),
        ("history --slowest, one step", Ask::Slowest),
        ("a short id", Ask::ShortId(filled.call)),
        ("history --tool --since", Ask::Calls(Filter { tool: text("tool_7"), since: early, ..any() })),
        ("show CALL", Ask::Call(filled.call)),
        ("show TASK, its calls", Ask::TaskCalls(filled.task)),
        ("tasks", Ask::Tasks(task())),
        ("tasks --since", Ask::Tasks(TaskFilter { since: early, ..task() })),
        ("tasks --until", Ask::Tasks(TaskFilter { until: early, ..task() })),
        ("tasks --state failed", Ask::Tasks(TaskFilter { state: Some(TaskState::Failed), ..task() })),
        ("tasks --state running", Ask::Tasks(TaskFilter { state: Some(TaskState::Running), ..task() })),
        ("tasks --agent", Ask::Tasks(TaskFilter { agent: text("agent_3"), ..task() })),
        ("tasks --conversation", Ask::Tasks(TaskFilter { conversation: text("conversation 100"), ..task() })),
        ("tools", Ask::Tools),
        ("workers --all", Ask::Workers),
        ("dead-letters", Ask::DeadLetters),
        ("stats --since 1h, not rolled up", Ask::Stats(stats(filled, By::Tool, 1))),
    ])
}

/// Those about sums, once they are rolled up.
pub(crate) fn about_sums(filled: &Filled) -> Vec<Question> {
    let stats = |by, hours| stats(filled, by, hours);
    named([
        ("stats --by tool", Ask::Stats(stats(By::Tool, 24))),
        ("stats --by class", Ask::Stats(stats(By::Class, 24))),
        ("stats --by model", Ask::Stats(stats(By::Model, 24))),
        ("stats --by worker", Ask::Stats(stats(By::Worker, 24))),
        ("stats --by hour", Ask::Stats(stats(By::Hour, 24))),
        ("stats --by tool --since 30days", Ask::Stats(stats(By::Tool, 720))),
    ])
}

fn stats(filled: &Filled, by: By, hours: i64) -> StatsQuestion {
    StatsQuestion { by, and: None, since: filled.now - TimeDelta::hours(hours), until: None, tool: None, tenant: None }
}

fn ids(calls: &[FoundCall]) -> Vec<CallId> {
    calls.iter().map(|found| found.call).collect()
}

fn named<const N: usize>(questions: [(&'static str, Ask); N]) -> Vec<Question> {
    questions.into_iter().map(|(name, ask)| Question { name, ask }).collect()
}

impl Question {
    /// Asks it; how many entries the answer has.
    pub(crate) async fn ask(&self, store: &Store) -> Result<usize, StoreError> {
        Ok(match &self.ask {
            Ask::Calls(filter) => store.history(filter, PAGE).await?.len(),
            Ask::Search(texts) => {
                let calls = ids(&store.find_calls(&Filter::default(), STEP).await?.calls);
                let mut read = 0;
                for group in store.may_contain(&calls, texts).await? {
                    read += store.payloads(&group).await?.len();
                }
                read
            }
            Ask::Slowest => {
                let mut calls = store.find_calls(&Filter::default(), STEP_OF_TIMES).await?.calls;
                calls.sort_by_key(|found| Reverse(found.total_ms));
                calls.truncate(PAGE as usize);
                store.call_lines(&ids(&calls)).await?.len()
            }
            Ask::ShortId(CallId(id)) => {
                let (first, last) = (id.as_u128() >> 32 << 32, id.as_u128() | u128::from(u32::MAX));
                let _digits = store.unique_digits(&[*id]).await?;
                store.ids_between(Uuid::from_u128(first), Uuid::from_u128(last), 2).await?.len()
            }
            Ask::Tasks(filter) => store.tasks(filter, PAGE).await?.len(),
            Ask::Call(call) => usize::from(store.record(*call).await?.is_some()),
            Ask::TaskCalls(task) => store.task_calls(*task).await?.len(),
            Ask::Tools => store.tool_records(60_000).await?.len(),
            Ask::Workers => store.worker_records(true).await?.len(),
            Ask::DeadLetters => store.dead_letter_records(None, PAGE).await?.len(),
            Ask::Stats(question) => store.stats(question).await?.groups.len(),
        })
    }
}
