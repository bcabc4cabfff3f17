//! The end of a worker process: killed, or asked to end.

use super::{state::World, worker::Worker};

impl World {
    /// A process ends without a word; another one starts.
    pub(super) fn replace_worker(&mut self, w: usize) {
        let process = self.new_process();
        let worker = &mut self.workers[w];
        let (mut held, mut claims, mut releases) = (
            std::mem::take(&mut worker.held),
            std::mem::take(&mut worker.claims),
            std::mem::take(&mut worker.releases),
        );
        held.clear();
        claims.clear();
        releases.clear();
        *worker = Worker { held, claims, releases, ..Worker::new(process) };
    }

    /// A process that was asked to end gives back what it can, now or when its tools are done.
    pub(super) fn leave(&mut self, w: usize, at_once: bool) {
        self.workers[w].leaving = true;
        while !self.workers[w].claims.is_empty() {
            self.give_claim_up(w);
        }
        let mut n = 0;
        while at_once && n < self.workers[w].held.len() {
            if self.workers[w].held[n].reported || !self.hand_back(w, n) {
                n += 1;
            }
        }
    }

    /// A process that was asked to end and has nothing left to do is gone.
    pub(super) fn gone(&mut self, w: usize) {
        if self.workers[w].leaving && !self.workers[w].paused && self.workers[w].is_idle() {
            self.tell(|| format!("worker {w} has ended, another one starts"));
            self.replace_worker(w);
        }
    }
}
