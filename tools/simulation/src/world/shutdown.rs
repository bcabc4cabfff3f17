//! The end of a worker process: it is killed, or asked to stop.

use super::{
    ids::{ALL_TOOLS, Process, ToolSet},
    state::World,
    worker::Worker,
};
use crate::random::mix;

impl World {
    /// Replaces a process that has ended or was killed. The new one uses the memory of its lists.
    pub(super) fn replace_worker(&mut self, w: usize) {
        let process = self.new_process();
        let tools = self.tools_of(process);
        let worker = &mut self.workers[w];
        let (mut held, mut claims, mut releases) = (
            std::mem::take(&mut worker.held),
            std::mem::take(&mut worker.claims),
            std::mem::take(&mut worker.releases),
        );
        held.clear();
        claims.clear();
        releases.clear();
        *worker = Worker { held, claims, releases, ..Worker::new(process, tools) };
    }

    /// The tools of a new worker process: one in two lacks one of them.
    pub(super) const fn tools_of(&self, process: Process) -> ToolSet {
        match mix(self.setup.seed ^ process as u64) & 3 {
            0 => 1,
            1 => 2,
            _ => ALL_TOOLS,
        }
    }

    /// Asks a process to stop: it gives up its claims and, if `at_once`, stops its tools.
    pub(super) fn shut_down(&mut self, w: usize, at_once: bool) {
        self.workers[w].stopping = true;
        while !self.workers[w].claims.is_empty() {
            self.give_up_claim(w);
        }
        let mut n = 0;
        while at_once && n < self.workers[w].held.len() {
            if self.workers[w].held[n].reported || !self.stop_and_release(w, n) {
                n += 1;
            }
        }
    }

    /// Replaces a process that was asked to stop and has nothing left to do.
    pub(super) fn replace_if_stopped(&mut self, w: usize) {
        if self.workers[w].stopping && !self.workers[w].paused && self.workers[w].is_idle() {
            self.log(|| format!("worker {w} has ended, another one starts"));
            self.replace_worker(w);
        }
    }
}
