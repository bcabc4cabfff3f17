//! Looks at the calls whose time has come: leases that are over, retries that are due, jobs that nobody claimed,
//! deadlines that passed.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use redial_engine::{Budget, Event};
use redial_proto::CallState;
use redial_store::{CallRow, Change, StoreError, Sweeper};
use redial_telemetry::metrics;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, decide, effects, wait::until};

/// The longest time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Calls looked at in one transaction.
const BATCH: u32 = 500;
/// Jobs published again in one pass, or in one second after a loss, at most: the sweeper must not become the storm.
pub(crate) const MOST_REPUBLISHED: u32 = 5_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut pause = Duration::ZERO;
    let (mut swept_at, mut troubled) = (Instant::now(), false);
    let mut connections = context.queue.connections();
    while until(&shutdown, wait(&context, pause)).await.is_some() {
        // A process that was stopped is an outage too. One that has just ended counts from now: this may be the first
        // moment at which a worker could renew.
        let reconnected = connections.has_changed().unwrap_or(true);
        connections.mark_unchanged();
        if troubled
            || reconnected
            || !context.queue.is_connected()
            || context.looks_hung()
            || swept_at.elapsed() > INTERVAL * 2 + context.config.lease / 3
        {
            context.note_outage();
        }
        let swept = pass(&context).await;
        troubled = swept.is_err();
        pause = swept.unwrap_or_else(|error| {
            tracing::warn!(%error, "the sweep waits for the database");
            context.note_outage();
            INTERVAL
        });
        swept_at = Instant::now();
    }
}

/// Until the pause is over, or a retry was scheduled that may be due sooner.
async fn wait(context: &Context, pause: Duration) {
    tokio::select! {
        () = sleep(pause) => {}
        () = context.due.notified() => {}
    }
}

/// Looks at everything that is due; returns when to look next.
async fn pass(context: &Context) -> Result<Duration, StoreError> {
    let mut republished = 0;
    loop {
        let began = Instant::now();
        let mut sweep = Sweep { context, began, allowed: HashMap::new(), changes: Vec::new(), republished };
        let (applied, due) = context.store.sweep(BATCH, &mut sweep).await?;
        note_if_hung(context, began);
        metrics().jobs_republished(u64::from(sweep.republished - republished));
        republished = sweep.republished;
        let changes = sweep.changes;
        effects::carry_out(context, decide::effects(context, &changes, applied)).await;
        if due < BATCH as usize {
            break;
        }
    }
    let asked = Instant::now();
    let next = context.store.next_wake().await?;
    note_if_hung(context, asked);
    let longest = context.look_interval();
    Ok(next.map_or(longest, |wait| wait.to_std().unwrap_or(Duration::from_millis(5))).min(longest))
}

/// While a statement hung nobody could renew: an outage, whether or not anything was due. A lease was renewed at most a
/// third of its length before; of one hang that lasts the other two thirds a sweep sees at least one.
fn note_if_hung(context: &Context, began: Instant) {
    if began.elapsed() >= (INTERVAL * 2).min(context.config.lease / 3) {
        context.note_outage();
    }
}

struct Sweep<'a> {
    context: &'a Context,
    began: Instant,
    /// Retry tokens granted per tool.
    allowed: HashMap<String, u32>,
    changes: Vec<Change>,
    republished: u32,
}

impl Sweeper for Sweep<'_> {
    fn spend(&mut self, tool: &str, tokens: Option<f64>, seconds: f64, wanted: u32) -> f64 {
        let bucket = tokens.map_or_else(Budget::full, |tokens| Budget { tokens });
        let mut bucket = bucket.earned(self.context.take_successes(tool), seconds);
        let granted = (0..wanted).take_while(|_| bucket.take()).count();
        self.allowed.insert(tool.to_owned(), u32::try_from(granted).unwrap_or(0));
        bucket.tokens
    }

    fn decide(&mut self, calls: &[CallRow]) -> Vec<Change> {
        note_if_hung(self.context, self.began);
        let grace = self.context.grace();
        self.changes = calls.iter().map(|call| self.decide_one(call, grace)).collect();
        self.changes.clone()
    }
}

impl Sweep<'_> {
    fn decide_one(&mut self, call: &CallRow, grace: Duration) -> Change {
        let retry_allowed = call.state == CallState::RetryWait && self.take_token(&call.tool);
        let event = Event::Woken { retry_allowed, grace_until: call.read_at + grace };
        decide::change(&self.context.registry, call, &event, None).unwrap_or_else(|| self.unclaimed(call))
    }

    fn take_token(&mut self, tool: &str) -> bool {
        match self.allowed.get_mut(tool) {
            Some(tokens) if *tokens > 0 => {
                *tokens -= 1;
                true
            }
            _ => false,
        }
    }

    fn unclaimed(&mut self, call: &CallRow) -> Change {
        if self.republished >= MOST_REPUBLISHED {
            return decide::look_again(call, INTERVAL);
        }
        let change = decide::unclaimed(call, self.context.is_queued(&call.pool));
        self.republished += u32::from(change.publish);
        change
    }
}
