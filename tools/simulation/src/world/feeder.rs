//! What the feeder of a dispatcher knows: the workers that live and the jobs on the stream, as of its own last look.

use redial_engine::{
    call::{JobState, Waiting},
    health::{self, Observed},
    window::Windows,
};
use redial_proto::ErrorClass;
use redial_records::{Backlog, LiveConsumer, Time};

use super::{
    clock::{Ms, duration},
    ids::{ConsumerNo, TOOLS, ToolNo, ToolSet, consumer_name, has_tool},
    tables::CallRow,
};

/// Slots of a worker, as it registers them.
const SLOTS: u32 = 2;

/// What a feeder knows.
#[derive(Debug)]
pub(super) struct Feeder {
    pub(super) windows: Windows,
    /// The consumers that count as live.
    pub(super) live: Vec<Live>,
    /// Consumers whose jobs wait for workers, as bits.
    pub(super) queued: u8,
    /// Since when each tool recovers.
    pub(super) recovering: [Option<Time>; TOOLS.len()],
    observed: [Counts; TOOLS.len()],
    /// It has published something since it last looked at the stream.
    pub(super) published: bool,
}

/// A consumer with live workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) consumer: ConsumerNo,
    pub(super) workers: u32,
    /// The tools of the consumer.
    pub(super) tools: ToolSet,
    /// The tools that all of its live workers really have.
    pub(super) had: ToolSet,
}

/// What was observed of a tool since it was last written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    successes: u32,
    failures: u32,
    failing_since: Option<Ms>,
}

impl Feeder {
    pub(super) fn new(window: u64) -> Self {
        Self {
            windows: Windows::of_size(window..=window),
            live: Vec::new(),
            queued: 0,
            recovering: [None; TOOLS.len()],
            observed: [Counts::default(); TOOLS.len()],
            published: false,
        }
    }

    /// What is known of the job of a call that is ready.
    pub(super) fn job_state(&self, row: &CallRow) -> JobState {
        let tool = TOOLS[usize::from(row.tool)];
        let queued = |consumer: &ConsumerNo| {
            self.queued >> consumer & 1 == 1 && self.windows.has(&consumer_name(*consumer), tool)
        };
        if row.consumer.as_ref().is_some_and(queued) { JobState::Queued } else { JobState::Lost }
    }

    /// Why a call waits.
    pub(super) fn waiting(&self, row: &CallRow) -> Waiting {
        if !self.windows.is_served(TOOLS[usize::from(row.tool)]) {
            return Waiting::ForWorker { last_seen: None };
        }
        match row.backlog {
            Some(Backlog::Retry) => Waiting::ForRetries { recovering_since: self.recovering[usize::from(row.tool)] },
            _ => Waiting::InBacklog,
        }
    }

    /// Takes note of an attempt that ended.
    pub(super) fn count(&mut self, tool: ToolNo, class: Option<ErrorClass>, now: Ms) {
        let counts = &mut self.observed[usize::from(tool)];
        match class {
            None => (counts.successes, counts.failing_since) = (counts.successes + 1, None),
            Some(class) if health::is_outage(class) => {
                counts.failures += 1;
                counts.failing_since.get_or_insert(now);
            }
            Some(_) => {}
        }
    }

    pub(super) fn has_observed(&self) -> bool {
        self.observed != [Counts::default(); TOOLS.len()]
    }

    pub(super) fn take_observed(&mut self, tool: ToolNo, now: Ms) -> Observed {
        let Counts { successes, failures, failing_since } = std::mem::take(&mut self.observed[usize::from(tool)]);
        Observed { successes, failures, failing_for: failing_since.map(|since| duration(now - since)) }
    }
}

impl Live {
    pub(super) fn record(self) -> LiveConsumer {
        let tools = (0..).zip(TOOLS).filter(|(tool, _)| has_tool(self.tools, *tool));
        LiveConsumer {
            name: consumer_name(self.consumer),
            pool: String::new(),
            tools: tools.map(|(_, name)| name.to_owned()).collect(),
            slots: self.workers * SLOTS,
            workers: self.workers,
        }
    }
}
