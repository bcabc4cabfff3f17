//! The end of a worker process: killed, or pending to end.

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

    /// A process that was pending to end gives back what it can, now or when its tools are done.
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

    /// A process that was pending to end and has nothing left to do is gone.
    pub(super) fn replace_if_stopped(&mut self, w: usize) {
        if self.workers[w].stopping && !self.workers[w].paused && self.workers[w].is_idle() {
            self.log(|| format!("worker {w} has ended, another one starts"));
            self.replace_worker(w);
        }
    }
}
