//! How many jobs share a message.

use redial_proto::limits::MAX_PACK;
use redial_records::LiveConsumer;

/// A message holds at most this part of what each worker gets of the jobs that are published together, and of the slots of a worker. So
/// no worker gets much more than another, and a worker that is nearly busy gives little back.
const PACKED_PART: usize = 4;

/// Returns how many of so many jobs, which are published at the same time to these workers, one message may hold; at
/// least one.
pub fn pack_size(consumer: &LiveConsumer, jobs: usize) -> usize {
    let workers = usize::try_from(consumer.workers).unwrap_or(usize::MAX).max(1);
    let slots = usize::try_from(consumer.slots).unwrap_or(usize::MAX) / workers;
    (jobs / workers / PACKED_PART).min(slots / PACKED_PART).clamp(1, MAX_PACK)
}
