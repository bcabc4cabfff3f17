//! What ends in a tenant, for the streams of its feed: read once, however many they are.
//!
//! Ends become visible in another order than that of their times, so what ended lately is read again until it is certain that
//! nothing earlier can appear ([`redial_store::stats::Fence`]); that time is the id of an event.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use chrono::TimeDelta;
use redial_proto::{CallId, TaskId, TaskNotice, Tenant};
use redial_store::{
    Store, StoreError, Time,
    audit::{EndedLine, EndedPosition},
    stats::Fence,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::sse::Page;

/// How often the record is read.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// Ends that are read at once.
pub(crate) const PAGE: u32 = 500;
/// Events that may wait for the slowest stream; one that is further behind reads the record instead.
const WAITING: usize = 2_000;
/// Each look reads again what ended so short a time before the last end that was seen: most ends become visible within it.
const OVERLAP: TimeDelta = TimeDelta::seconds(1);
/// After so many looks everything since the fence is read again.
const LOOKS: u32 = 10;
/// A statement takes the time of an end when it begins; Postgres ends a dispatcher's statement after 8 s.
const STATEMENT: TimeDelta = TimeDelta::seconds(15);
/// Until it is known which transactions are over.
const MARGIN: TimeDelta = TimeDelta::minutes(1);
/// Ends that are remembered as told. If more are told while the fence stays where it is, some are told twice.
const REMEMBERED: usize = 200_000;

/// A call or a task that ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct EndedItem {
    /// The call; absent for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    /// The task, or the one that asked for the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The agent of a task, unless it was given with the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// How it ended.
    state: String,
    /// The error class of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// Why a task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Attempts of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// When it ended, by the database's clock.
    at: Time,
}

impl From<EndedLine> for EndedItem {
    fn from(line: EndedLine) -> Self {
        let EndedLine { id, is_task, name, state, class, attempts, task, at } = line;
        let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
        if is_task {
            let task = Some(TaskId(id));
            return Self { call: None, task, tool: None, agent: name, state, class: None, code: class, attempts, at };
        }
        let (call, task) = (Some(CallId(id)), task.map(TaskId));
        Self { call, task, tool: name, agent: None, state, class, code: None, attempts, at }
    }
}

impl EndedItem {
    pub(crate) const fn event(&self) -> &'static str {
        if self.call.is_some() { "call" } else { "task" }
    }
}

/// What a stream is told.
#[derive(Clone)]
pub(crate) struct Hint {
    pub(crate) text: Bytes,
    /// The id that it has.
    pub(crate) id: Option<Time>,
}

/// The tenants with open feeds.
#[derive(Clone, Default)]
pub(crate) struct Feeds {
    tails: Arc<Mutex<HashMap<Tenant, Tail>>>,
}

/// What the streams of a tenant listen to.
#[derive(Clone)]
pub(crate) struct Tail {
    hints: broadcast::Sender<Hint>,
    /// Nothing that ended before can appear any more.
    pub(crate) certain: watch::Sender<Option<Time>>,
}

/// An id as it is written.
pub(crate) fn time_id(at: Time) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

impl Feeds {
    /// What the streams of this tenant listen to; it is read from the record as long as there are any.
    pub(crate) fn listen(
        &self,
        store: &Store,
        tenant: &Tenant,
        shutdown: &CancellationToken,
    ) -> (Tail, broadcast::Receiver<Hint>) {
        let mut tails = self.lock();
        if let Some(tail) = tails.get(tenant) {
            return (tail.clone(), tail.hints.subscribe());
        }
        let tail = Tail { hints: broadcast::Sender::new(WAITING), certain: watch::Sender::new(None) };
        let hints = tail.hints.subscribe();
        tails.insert(tenant.clone(), tail.clone());
        let reader = Reader {
            store: store.clone(),
            shutdown: shutdown.clone(),
            feeds: self.clone(),
            tenant: tenant.clone(),
            tail: tail.clone(),
            seen: None,
        };
        tokio::spawn(reader.run());
        (tail, hints)
    }

    /// Tells the feeds of a tenant of a step of a task. Its end is told from the record.
    pub(crate) fn notice(&self, tenant: &Tenant, notice: &[u8]) {
        let Some(tail) = self.lock().get(tenant).cloned() else { return };
        let Ok(notice) = serde_json::from_slice::<TaskNotice>(notice) else { return };
        let mut page = Page::default();
        if !notice.state.is_terminal() && page.event(None, "step", &notice).is_ok() {
            // An error says that no stream listens.
            let _ = tail.hints.send(Hint { text: page.into_bytes(), id: None });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, Tail>> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what ends in one tenant.
struct Reader {
    store: Store,
    shutdown: CancellationToken,
    feeds: Feeds,
    tenant: Tenant,
    tail: Tail,
    seen: Option<Seen>,
}

/// What was read.
struct Seen {
    /// Nothing that ended before can appear any more, and all of it was told.
    certain: Time,
    /// The last end.
    last: Time,
    /// What ended since `certain` and was told.
    told: BTreeSet<EndedPosition>,
    /// The last fence that was not passed when it was compared, and a time behind the one that was passed before.
    fence: Fence,
    bound: Time,
    looks: u32,
}

impl Reader {
    async fn run(mut self) {
        loop {
            match self.look().await {
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, tenant = %self.tenant, "Failed to read what ended, for feeds; trying again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.shutdown.cancelled() => return,
            }
            let mut tails = self.feeds.lock();
            if self.tail.hints.receiver_count() == 0 {
                tails.remove(&self.tenant);
                return;
            }
        }
    }

    async fn look(&mut self) -> Result<(), StoreError> {
        let now = self.store.fence().await?;
        let Some(seen) = &mut self.seen else {
            let certain = now.at - MARGIN;
            self.seen =
                Some(Seen { certain, last: certain, told: BTreeSet::new(), fence: now, bound: certain, looks: 0 });
            self.read(EndedPosition::before(certain), false).await?;
            self.tail.certain.send_replace(Some(certain));
            return Ok(());
        };
        seen.pass(now);
        let bound = seen.bound;
        seen.looks += 1;
        let all = seen.looks >= LOOKS;
        let from = if all { seen.certain } else { seen.certain.max(seen.last - OVERLAP) };
        self.read(EndedPosition::before(from), true).await?;
        if let (true, Some(seen)) = (all, &mut self.seen) {
            seen.looks = 0;
            seen.certain = seen.certain.max(bound);
            seen.told = seen.told.split_off(&EndedPosition::before(seen.certain));
            self.tail.certain.send_replace(Some(seen.certain));
        }
        Ok(())
    }

    /// Reads what ended after a position, and tells what was not told before.
    async fn read(&mut self, mut after: EndedPosition, tell: bool) -> Result<(), StoreError> {
        loop {
            let ended = self.store.of(&self.tenant).ended_since(after, PAGE).await?;
            let is_last = ended.len() < PAGE as usize;
            after = ended.last().map_or(after, EndedLine::position);
            let Some(seen) = &mut self.seen else { return Ok(()) };
            seen.last = seen.last.max(after.at);
            for line in ended {
                if seen.told.insert(line.position()) && tell {
                    self.tail.tell(line, seen.certain);
                }
            }
            while seen.told.len() > REMEMBERED {
                seen.told.pop_first();
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Seen {
    /// Takes a new fence.
    fn pass(&mut self, now: Fence) {
        if now.is_before(&self.fence) {
            // The clock was set back: what ends now has earlier times.
            let certain = self.certain.min(now.at - MARGIN);
            (self.certain, self.bound, self.last, self.fence) = (certain, certain, certain, now);
        } else if self.fence.is_passed_by(&now) {
            self.bound = self.fence.at - STATEMENT;
            self.fence = now;
        }
    }
}

impl Tail {
    fn tell(&self, line: EndedLine, certain: Time) {
        let (item, mut page) = (EndedItem::from(line), Page::default());
        if page.event(Some(&time_id(certain)), item.event(), &item).is_ok() {
            let _ = self.hints.send(Hint { text: page.into_bytes(), id: Some(certain) });
        }
    }
}
