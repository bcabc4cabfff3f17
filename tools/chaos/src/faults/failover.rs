//! The primary of Postgres is lost, and its standby takes its place.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::Utc;
use redial_testkit::Observer;

use super::{Injector, Outcome, Target, between};
use crate::schedule::Step;

/// How long an old primary is back, until it is made a standby.
const OLD: Duration = Duration::from_secs(2);

impl Injector {
    /// Kills the primary, and promotes its standby some time later. Then the old primary comes back as it was: it takes
    /// writes, and must get none. At last it becomes the standby, whom each commit waits for.
    pub(super) async fn fail_over(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        let killed = Utc::now();
        self.fixture.servers.kill_postgres().await;
        tokio::time::sleep(between(Duration::ZERO, Duration::from_millis(1500), step)).await;
        let asked = Instant::now();
        self.fixture.servers.pair().context("there is a standby")?.promote().await;
        let promotion = asked.elapsed();
        let accepted = self.accepted().await;
        let outcome = Outcome::recovered(accepted).counts_for(Target::Promoted);
        self.fixture.observer.turn_to(&self.fixture.servers.primary_url());

        let database = self.fixture.servers.database().to_owned();
        let pair = self.fixture.servers.pair().context("there is a standby")?;
        pair.start_other().await;
        let old = Observer::new(&pair.other_url(&database));
        tokio::time::sleep(OLD).await;
        match old.submitted_since(killed).await {
            Some(0) => {}
            Some(calls) => self.wrong.push(format!("an old primary took {calls} calls")),
            None => self.wrong.push("an old primary that was started again did not answer".to_owned()),
        }
        self.fixture.servers.pair().context("there is a standby")?.add_standby().await;
        Ok(outcome.noted(format!("the promotion itself took {:.2} s", promotion.as_secs_f64())))
    }
}
