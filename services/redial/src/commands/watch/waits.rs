//! What holds a task up, for who waits for it: a model or a tool that no worker has, a queue, a retry.
//!
//! Messages about a task do not tell this, so it is read from the database, if the user has its address.

use std::collections::HashSet;

use chrono::Utc;
use redial_proto::{CallState, TaskId, WaitReason};
use redial_store::{
    Store,
    audit::{CallAudit, Filter},
};

use crate::{connect, settings::Settings, timeline::call};

/// The newest calls of a task that are looked at: those of its last turn.
const CALLS: u32 = 20;

pub(super) struct Waits<'a> {
    settings: &'a Settings,
    store: Option<Store>,
    /// What was told, so that it is told once.
    told: HashSet<(String, u32, Option<&'static str>)>,
}

impl<'a> Waits<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self { settings, store: None, told: HashSet::new() }
    }

    /// Returns what is new about the calls that the task waits for. Nothing if the database cannot be asked.
    pub(super) async fn news(&mut self, task: TaskId) -> Vec<String> {
        self.read(task).await.unwrap_or_default()
    }

    async fn read(&mut self, task: TaskId) -> Option<Vec<String>> {
        if self.store.is_none() {
            self.settings.database_url_if_set()?;
            self.store = connect::store(self.settings).await.ok();
        }
        let store = self.store.as_ref()?;
        let filter = Filter { task: Some(task), ..Filter::default() };
        let calls = store.history(&filter, CALLS).await.ok()?;
        let waiting = |state| matches!(state, CallState::Ready | CallState::RetryWait | CallState::ClientWait);
        let mut news = Vec::new();
        for line in calls.iter().rev().filter(|line| waiting(line.state)) {
            let record = store.record(line.call).await.ok().flatten()?;
            if self.told.insert(what(&record)) {
                news.extend(text(&record));
            }
        }
        Some(news)
    }
}

fn what(record: &CallAudit) -> (String, u32, Option<&'static str>) {
    let attempts = u32::try_from(record.attempts_made.len()).unwrap_or(u32::MAX);
    (
        record.line.call.to_string() + record.line.state.as_str(),
        attempts,
        record.waits.map(|waits| WaitReason::as_str(waits.reason)),
    )
}

fn text(record: &CallAudit) -> Option<String> {
    let waits = call::waiting(record, Utc::now())?;
    Some(format!("{} waits {}", record.line.tool, waits.lines().next().unwrap_or_default()))
}
