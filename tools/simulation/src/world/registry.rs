//! Workers on record: which of them live, and from which consumers they pull.

use super::{
    clock::{CONSUMER_FREE_AFTER, LEASE},
    feeder::Live,
    ids::ConsumerNo,
    state::World,
    tables::WorkerRow,
};
use crate::Mutation;

impl World {
    /// Every worker that can be reached says that it lives; one that is not on record registers.
    pub(super) fn record_heartbeats(&mut self) {
        if !self.nats_up || !self.postgres_up {
            return;
        }
        for w in 0..self.workers.len() {
            let worker = &self.workers[w];
            if worker.paused || worker.cut {
                continue;
            }
            let (process, draining, now) = (worker.process, worker.stopping, self.now);
            let holds_nothing = worker.held.is_empty();
            match self.tables.workers.iter_mut().find(|row| row.process == process) {
                Some(row) => {
                    (row.seen_at, row.draining) = (now, draining);
                    row.heard_after = if holds_nothing { Some(now) } else { row.heard_after };
                }
                None => self.register(w),
            }
        }
    }

    /// `register_worker.sql`, and the choice of a consumer: that of the same tools, a free one, or a new one.
    fn register(&mut self, w: usize) {
        let (process, tools, draining) = (self.workers[w].process, self.workers[w].tools, self.workers[w].stopping);
        let same = self.tables.consumers.iter().position(|of| *of == tools);
        let number = same.or_else(|| self.free_consumer()).unwrap_or(self.tables.consumers.len());
        let consumer = number as ConsumerNo;
        match self.tables.consumers.get_mut(number) {
            Some(of) if *of == tools => {}
            Some(of) => {
                *of = tools;
                // They are not asked first. Those that live still register again.
                if !self.has(Mutation::ConsumerKeepsWorkers) {
                    self.tables.workers.retain(|row| row.consumer != consumer);
                }
            }
            None => self.tables.consumers.push(tools),
        }
        self.tables.workers.push(WorkerRow {
            process,
            consumer,
            tools,
            seen_at: self.now,
            heard_after: None,
            draining,
        });
        self.workers[w].consumer = Some(consumer);
        self.log(|| format!("worker {w} registers tools {tools:02b}: consumer {consumer}"));
    }

    /// `free_consumer.sql`: one whose workers were not seen for a while.
    fn free_consumer(&self) -> Option<usize> {
        let seen_after = self.now - CONSUMER_FREE_AFTER;
        let used =
            |n: usize| self.tables.workers.iter().any(|row| usize::from(row.consumer) == n && row.seen_at > seen_after);
        (0..self.tables.consumers.len()).find(|n| !used(*n))
    }

    /// `live_consumers.sql`.
    pub(super) fn live_consumers(&self) -> Vec<Live> {
        let is_live = |row: &&WorkerRow| !row.draining && row.seen_at > self.now - LEASE;
        let mut live: Vec<Live> = Vec::new();
        for row in self.tables.workers.iter().filter(is_live) {
            if let Some(one) = live.iter_mut().find(|one| one.consumer == row.consumer) {
                one.had &= row.tools;
                one.workers += 1;
            } else {
                let tools = self.tables.consumers[usize::from(row.consumer)];
                live.push(Live { consumer: row.consumer, workers: 1, tools, had: row.tools });
            }
        }
        live.sort_unstable_by_key(|one| one.consumer);
        live
    }
}
