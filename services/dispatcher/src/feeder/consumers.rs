//! The consumers with live workers, and how their jobs wait on the stream.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use redial_queue::{ConsumerDepth, Unclaimed};
use redial_records::Time;
use redial_store::WorkingConsumer;

use super::{Feeder, Known};

impl Feeder {
    /// Takes note of the consumers with workers; returns those that had live ones before, have none now, and are not
    /// [`Feeder::requeued`]. `keep`: silent workers that lived before still count, because after an outage they may not have had
    /// the time to send a heartbeat.
    pub(crate) fn set_consumers(&self, consumers: Vec<WorkingConsumer>, keep: bool) -> Vec<String> {
        let mut known = self.lock();
        let before: HashSet<String> = known.live.drain(..).map(|one| one.name).collect();
        let counts = |one: &WorkingConsumer| one.is_live || (keep && before.contains(&one.consumer.name));
        known.live = consumers.into_iter().filter(counts).map(|one| one.consumer).collect();
        let Known { windows, live, gone, queued, returned, claimed, .. } = &mut *known;
        let names: HashSet<&str> = live.iter().map(|one| one.name.as_str()).collect();
        let is_live = |name: &String| names.contains(name.as_str());
        gone.extend(before);
        gone.retain(|name| !is_live(name));
        queued.retain(is_live);
        returned.retain(is_live);
        claimed.retain(|name, _| is_live(name));
        windows.set_consumers(live);
        gone.iter().cloned().collect()
    }

    /// Takes note that the calls of a consumer that is gone are in the backlog.
    pub(crate) fn requeued(&self, consumer: &str) {
        self.lock().gone.remove(consumer);
    }

    /// Returns until when workers could be heard: now, or, until they had the time to send a heartbeat after an outage,
    /// when it began; at the start, when one was last seen.
    pub(crate) fn seen_until(&self, now: Time, all_could_be_heard: bool) -> Time {
        let mut known = self.lock();
        if all_could_be_heard {
            known.seen_until = Some(now);
        }
        let last_seen = known.last_seen.values().max().copied();
        *known.seen_until.get_or_insert(last_seen.unwrap_or(now))
    }

    pub(crate) fn set_last_seen(&self, last_seen: HashMap<String, Time>) {
        self.lock().last_seen = last_seen;
    }

    pub(crate) fn set_depths(&self, unclaimed: &HashMap<(String, String), Unclaimed>, began: Duration) {
        let Known { windows, stale, .. } = &mut *self.lock();
        windows.set_depths(&stale.jobs_without(unclaimed), began);
    }

    /// Takes note of what is on the stream for consumers whose depths were just read.
    pub(crate) fn look_for_stale(
        &self,
        unclaimed: &HashMap<(String, String), Unclaimed>,
        depths: &[(String, ConsumerDepth)],
    ) {
        let mut known = self.lock();
        for (consumer, depth) in depths {
            let of_consumer = unclaimed.iter().filter(|((one, _), _)| one == consumer);
            let on_stream = of_consumer.map(|(_, of_tool)| of_tool.messages).sum();
            known.stale.look(consumer, on_stream, *depth);
        }
    }

    pub(crate) fn set_depth(&self, consumer: &str, depth: ConsumerDepth) {
        let mut known = self.lock();
        // While a worker waits for jobs, pending ones are about to be delivered.
        note(&mut known.queued, consumer, depth.pending > 0 && depth.waiting_pulls == 0);
        note(&mut known.returned, consumer, depth.redelivered > 0);
    }

    pub(crate) fn live(&self) -> Vec<String> {
        self.lock().live.iter().map(|one| one.name.clone()).collect()
    }
}

fn note(set: &mut BTreeSet<String>, consumer: &str, is_in: bool) {
    if is_in {
        set.insert(consumer.to_owned());
    } else {
        set.remove(consumer);
    }
}
