//! A hostile client of the other tenant tries to reach what is not its own, and sends what nobody should. What it receives is
//! searched; what it must not change is checked at the end like everything else.

use std::time::Duration;

use redial_proto::{
    CallId, TaskId, UserRole,
    subjects::{Intake, Verb},
};
use serde_json::{Value, json};

use super::{Injector, Outcome, PATIENCE, Target, reached, reached_within};
use crate::{
    access::{self, MALLORY, TENANTS},
    load,
    stranger::Stranger,
};

/// Calls and tasks of the other tenant that are asked for.
const SOME: i64 = 5;
/// Requests without a pause.
const FLOOD: i64 = 1_000;
/// Submissions that cannot be read, without a pause; each is kept as a dead letter.
const LITTER: i64 = 50;
/// How long a submission may wait that NATS delivered to a dispatcher that was killed: it is delivered again after 30 s.
const DELIVERED_AGAIN: Duration = PATIENCE.saturating_add(Duration::from_secs(15));

impl Injector {
    pub(super) async fn hostile_clients(&mut self) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        self.intake_works().await?;
        let observer = &self.fixture.observer;
        let mut theirs = None;
        reached(async || {
            theirs = observer.ids_of(TENANTS[0].0, SOME).await;
            theirs.is_some()
        })
        .await;
        let theirs = theirs.ok_or_else(|| anyhow::anyhow!("the database did not answer for {PATIENCE:?}"))?;
        let (server, ear) = (self.fixture.servers.one_nats_url(), self.fixture.mallory.clone());
        let mut mallory = Stranger::connect(server, &access::mallory()?, ear).await?;
        mallory.subscribe_everywhere().await?;
        ask_as_everybody(&mut mallory, &theirs).await?;
        flood(&mut mallory, &theirs.0).await?;
        let good = self.put_good().await?;
        let outcome = Outcome::recovered(self.on_record(PATIENCE, &good).await).counts_for(Target::HostileClients);
        let refusals = mallory.refusals();
        if refusals == 0 {
            self.wrong.push("NATS refused nothing of what a hostile client tried".to_owned());
        }
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("NATS refused {refusals} of its messages")))
    }

    /// Puts a good submission on the intake stream; returns its key.
    async fn put_good(&mut self) -> anyhow::Result<String> {
        let call = load::of_fault(self.number(), load::PROBED, &json!({}));
        let (control, body) = (&self.fixture.control, serde_json::to_vec(&call)?);
        let put = reached(async || control.put_intake(Intake::Calls, body.clone().into(), None).await.is_ok()).await;
        anyhow::ensure!(put.is_some(), "the intake stream took nothing for {PATIENCE:?}");
        let key = call.key.unwrap_or_default();
        self.intake_keys.push(key.clone());
        Ok(key)
    }

    /// Waits until a submission of the intake stream runs: a store that was lost just before has its streams again, and what
    /// NATS delivered to a dispatcher that was killed just before was delivered again.
    async fn intake_works(&mut self) -> anyhow::Result<()> {
        let good = self.put_good().await?;
        if self.on_record(DELIVERED_AGAIN, &good).await.is_none() {
            self.wrong.push(format!("a submission did not run within {DELIVERED_AGAIN:?}"));
        }
        Ok(())
    }

    /// Measures how long it takes until the call of a key has ended.
    async fn on_record(&self, patience: Duration, key: &str) -> Option<Duration> {
        let observer = &self.fixture.observer;
        reached_within(patience, async || match observer.call_of_key(key).await.flatten() {
            Some(call) => observer.ended(call).await == Some(true),
            None => false,
        })
        .await
    }
}

/// Sends every verb with the ids of the other tenant: as itself, in every role, and as a user of that tenant.
async fn ask_as_everybody(mallory: &mut Stranger, theirs: &(Vec<CallId>, Vec<TaskId>)) -> anyhow::Result<()> {
    let (inbox, (tenant, user)) = (mallory.inbox(), TENANTS[0]);
    let (calls, tasks) = theirs;
    for (call, task) in calls.iter().zip(tasks.iter().cycle().map(Some).chain(std::iter::repeat(None))) {
        let body = json!({"call": call, "calls": [call], "task": task, "tool": load::PROBED, "arguments": {}, "input": "?",
            "agent": {"model": load::MODEL}, "conversation": "conversation-0", "confirm": true});
        let asks_about_one = json!({"call": call, "calls": calls, "task": task, "after_step": 0, "language": "en"});
        for &verb in Verb::ALL {
            for role in UserRole::ALL {
                for way in ["api", "gateway"] {
                    let theirs = format!("redial.{way}.{tenant}.{user}.{}.{}", role.as_str(), verb.name());
                    mallory.publish(&theirs, &inbox, &bytes(&body)).await?;
                }
                let own = format!("redial.api.{}.{}.{}.{}", MALLORY.0, MALLORY.1, role.as_str(), verb.name());
                mallory.publish(&own, &inbox, &bytes(&asks_about_one)).await?;
            }
        }
    }
    mallory.flush().await
}

/// Sends as much as it can, readable and not.
async fn flood(mallory: &mut Stranger, calls: &[CallId]) -> anyhow::Result<()> {
    let ((tenant, user), inbox) = (MALLORY, mallory.inbox());
    let get = format!("redial.api.{tenant}.{user}.read.calls.get");
    let (call, intake) = (json!({"call": calls.first()}), format!("redial.intake.{tenant}.{user}.submit.calls"));
    for n in 0..FLOOD {
        let body = if n % 2 == 0 { bytes(&call) } else { b"[[".to_vec() };
        mallory.publish(&get, &inbox, &body).await?;
        if n % (FLOOD / LITTER) == 0 {
            mallory.publish(&intake, &inbox, format!("{{\"{n}").as_bytes()).await?;
        }
    }
    mallory.flush().await
}

fn bytes(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}
