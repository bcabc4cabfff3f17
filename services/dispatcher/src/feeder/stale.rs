//! Messages on the stream that their consumer counts as answered, and will not deliver again. nats-server stores the progress of a
//! consumer and the removal of messages at different times: after a crash, and more so when the leader of a stream in a
//! cluster is killed again and again, it keeps thousands of them (measured with 2.9.10: 1,794 after twelve kills). They go with
//! their age; until then they must not count as jobs that wait, or nothing more would be published.

use std::collections::{HashMap, VecDeque};

use redial_queue::{ConsumerDepth, Unclaimed};

/// A message that is just being published or answered may be missing in one of two counts; not in so many looks in a row.
const LOOKS: usize = 3;

/// How many messages on the stream a consumer does not know.
#[derive(Debug, Default)]
pub(super) struct Stale(HashMap<String, VecDeque<u64>>);

impl Stale {
    /// Takes note of the messages that the stream has of a consumer, and of those that the consumer knows.
    pub(super) fn look(&mut self, consumer: &str, on_stream: u64, depth: ConsumerDepth) {
        let looks = self.0.entry(consumer.to_owned()).or_default();
        looks.push_front(on_stream.saturating_sub(depth.pending + depth.unacked));
        looks.truncate(LOOKS);
    }

    /// Returns the jobs on the stream, by consumer and tool, without those of stale messages. Of which tools these are
    /// is not known: each has its share.
    pub(super) fn jobs_without(
        &self,
        unclaimed: &HashMap<(String, String), Unclaimed>,
    ) -> HashMap<(String, String), u64> {
        let mut messages: HashMap<&str, u64> = HashMap::new();
        for ((consumer, _), of_tool) in unclaimed {
            *messages.entry(consumer).or_default() += of_tool.messages;
        }
        let left = |((consumer, tool), of_tool): (&(String, String), &Unclaimed)| {
            let all = messages.get(consumer.as_str()).copied().unwrap_or(0).max(1);
            let rest = all.saturating_sub(self.of_consumer(consumer));
            ((consumer.clone(), tool.clone()), of_tool.jobs.saturating_mul(rest).div_ceil(all))
        };
        unclaimed.iter().map(left).collect()
    }

    fn of_consumer(&self, consumer: &str) -> u64 {
        let looks = self.0.get(consumer).filter(|looks| looks.len() == LOOKS);
        looks.and_then(|looks| looks.iter().copied().min()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(counts: &[(&str, &str, u64)]) -> HashMap<(String, String), u64> {
        counts.iter().map(|(consumer, tool, count)| (((*consumer).into(), (*tool).into()), *count)).collect()
    }

    fn unclaimed(messages: &[(&str, &str, u64)], jobs_each: u64) -> HashMap<(String, String), Unclaimed> {
        let of_tool = |messages| Unclaimed { messages, jobs: messages * jobs_each };
        jobs(messages).into_iter().map(|(key, messages)| (key, of_tool(messages))).collect()
    }

    fn depth(pending: u64, unacked: u64) -> ConsumerDepth {
        ConsumerDepth { pending, unacked, ..ConsumerDepth::default() }
    }

    #[test]
    fn jobs_that_no_consumer_knows_in_several_looks_do_not_count() {
        let mut stale = Stale::default();
        let messages = [("default", "a", 900), ("default", "b", 300), ("models", "m", 5)];
        let (alone, packed) = (unclaimed(&messages, 1), unclaimed(&messages, 50));
        for look in 0..3 {
            assert_eq!(stale.jobs_without(&alone), jobs(&messages), "after {look} looks");
            stale.look("default", 1_200, depth(100, 20));
            stale.look("models", 5, depth(5, 0));
        }
        let left = jobs(&[("default", "a", 90), ("default", "b", 30), ("models", "m", 5)]);
        assert_eq!(stale.jobs_without(&alone), left, "1,080 of the consumer are stale");
        let left = jobs(&[("default", "a", 4_500), ("default", "b", 1_500), ("models", "m", 250)]);
        assert_eq!(stale.jobs_without(&packed), left, "a message is one for the consumer, whatever is in it");
        stale.look("default", 1_200, depth(1_200, 0));
        assert_eq!(stale.jobs_without(&alone), jobs(&messages), "they were on their way");
    }

    #[test]
    fn never_fewer_than_none() {
        let mut stale = Stale::default();
        (0..3).for_each(|_| stale.look("default", 50, depth(0, 0)));
        assert_eq!(stale.jobs_without(&unclaimed(&[("default", "a", 10)], 1)), jobs(&[("default", "a", 0)]));
        assert_eq!(stale.jobs_without(&unclaimed(&[], 1)), jobs(&[]));
    }
}
