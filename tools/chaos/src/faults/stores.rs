//! NATS loses what it had, or cannot write.

use std::time::Duration;

use chrono::Utc;

use super::{Injector, Outcome, Target, between};
use crate::schedule::Step;

impl Injector {
    pub(super) async fn wipe_store(&mut self) -> anyhow::Result<Outcome> {
        self.fixture.servers.kill_nats().await;
        if self.fixture.servers.cluster().is_some() {
            self.fixture.servers.wipe_nats();
        } else {
            self.fixture.disk.wipe()?;
        }
        self.fixture.servers.start_nats().await;
        Ok(Outcome::recovered(self.completion(Utc::now()).await).counts_for(Target::StoreWiped))
    }

    /// Wipes the store of the running server, which continues to acknowledge messages, and all of them are lost when it
    /// starts again.
    pub(super) async fn wipe_live_store(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        self.fixture.disk.wipe()?;
        tokio::time::sleep(between(Duration::from_millis(500), Duration::from_millis(2500), step)).await;
        self.fixture.servers.kill_nats().await;
        self.fixture.servers.start_nats().await;
        Ok(Outcome::recovered(self.completion(Utc::now()).await).counts_for(Target::StoreWiped))
    }

    /// Fills the disk. NATS may not recover by itself once there is room again: then it is restarted, as by an
    /// operator.
    pub(super) async fn fill_disk(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        if !self.fixture.disk.is_small() {
            let why = "a small disk of its own (tmpfs) is not permitted here; root on Linux may make one";
            return Ok(Outcome { skipped: Some(why.to_owned()), ..Outcome::default() });
        }
        self.fixture.disk.fill()?;
        tokio::time::sleep(between(Duration::from_secs(2), Duration::from_secs(4), step)).await;
        self.fixture.disk.free()?;
        self.fixture.servers.kill_nats().await;
        self.fixture.servers.start_nats().await;
        let outcome = Outcome::recovered(self.completion(Utc::now()).await);
        Ok(outcome.counts_for(Target::NatsBack).noted("room made, NATS restarted"))
    }
}
