//! A cluster whose leaders are killed.

use std::time::{Duration, Instant};

use chrono::Utc;
use redial_proto::{
    ToolEffect,
    subjects::{INTAKE_STREAM, JOBS_STREAM, RESULTS_STREAM},
};
use redial_testkit::RawNats;
use serde_json::json;

use super::{Injector, LOOK, Outcome, Target, reached_within};

/// Between two kills.
const PAUSE: Duration = Duration::from_secs(5);
/// Calls that are submitted after each kill: 20,000 in a minute.
const CALLS: u64 = 1_667;
/// How long all of them may take in the end.
const ALL_END: Duration = Duration::from_mins(2);
/// Whose leaders are killed, in turn.
const STREAMS: [&str; 3] = [JOBS_STREAM, RESULTS_STREAM, INTAKE_STREAM];

impl Injector {
    /// Kills the leader of a stream, again and again for a minute, each time one of another stream. The server is started
    /// again at once. Meanwhile many calls are submitted whose tool must not run twice.
    pub(super) async fn kill_leaders(&mut self) -> anyhow::Result<Outcome> {
        let (began, mut killed, mut calls) = (Instant::now(), 0, Vec::new());
        while began.elapsed() < self.minute {
            let round = Instant::now();
            if self.kill_leader(STREAMS[killed % STREAMS.len()]).await? {
                killed += 1;
            }
            calls.extend(self.submit(ToolEffect::Unsafe.as_str(), CALLS, |n| json!({"n": n})).await);
            tokio::time::sleep(PAUSE.saturating_sub(round.elapsed())).await;
        }
        let seconds = began.elapsed().as_secs();
        let recovery = self.completion(Utc::now()).await;
        let outcome = Outcome::recovered(recovery).counts_for(Target::LeaderKilled);
        let open = self.progress(&calls).await.open;
        let ended = reached_within(ALL_END, async || self.progress(&calls).await.open == 0).await;
        let ended =
            ended.map_or("did not all end".to_owned(), |time| format!("ended {:.1} s later", time.as_secs_f64()));
        Ok(outcome.noted(format!(
            "{killed} leaders killed in {seconds} s, {} calls meanwhile, of which the last {open} {ended}",
            calls.len()
        )))
    }

    /// Kills a leader; false if there was none for some seconds: the members have not elected one since the last was
    /// killed.
    async fn kill_leader(&mut self, stream: &str) -> anyhow::Result<bool> {
        let began = Instant::now();
        while began.elapsed() < PAUSE {
            let url = self.fixture.servers.one_nats_url().to_owned();
            let leader = RawNats::leader(&url, stream).await;
            let cluster = self.fixture.servers.cluster();
            if let (Some(leader), Some(cluster)) = (leader, cluster)
                && let Some(n) = cluster.index(&leader)
            {
                cluster.kill(n).await;
                cluster.start_again().await;
                return Ok(true);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(false)
    }
}
