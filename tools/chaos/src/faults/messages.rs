//! Messages that nobody should send: each is rejected on its own, and what comes after it is accepted.

mod hostile;

use std::time::Duration;

use bytes::Bytes;
use redial_proto::subjects::{self, Intake};
use redial_testkit::RawNats;
use serde_json::{Value, json};

use super::{Injector, LOOK, Outcome, PATIENCE, Target, reached, reached_within};
use crate::load;

/// Submissions in a batch: as many as are allowed.
const BATCH: usize = 1_000;
/// The size of each, so that the message is close to the limit of 1,000 KiB.
const ENTRY: usize = 980;
/// How long a request of garbage may wait for its answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a submission may wait that NATS delivered to a dispatcher that was killed: it is delivered again after 30 s.
const DELIVERED_AGAIN: Duration = PATIENCE.saturating_add(Duration::from_secs(15));

impl Injector {
    /// A batch in which everything is malformed, and a good submission behind it, on the intake stream.
    pub(super) async fn rejected_batch(&mut self) -> anyhow::Result<Outcome> {
        let (pulse, last) = (self.pulse(), self.last_dead_letter().await?);
        let batch = hostile::batch(BATCH, ENTRY);
        let size = batch.len();
        self.put_intake(batch.into()).await?;
        let good = self.put_good(None).await?;
        let accepted = self.on_record(&good).await;
        let outcome = Outcome::recovered(accepted).counts_for(Target::BatchRejected);
        let wanted = i32::try_from(BATCH)?;
        self.dead_letters_are(last, &[wanted]).await;
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("{size} bytes")))
    }

    /// Garbage on each subject that a client or a worker may publish to.
    pub(super) async fn hostile_messages(&mut self) -> anyhow::Result<Outcome> {
        let (pulse, last) = (self.pulse(), self.last_dead_letter().await?);
        self.intake_works().await?;
        let mut nats = RawNats::connect(self.fixture.servers.one_nats_url()).await;
        let mut sent = Sent::default();
        for payload in hostile::payloads() {
            self.send_garbage(&mut nats, &payload, &mut sent).await;
        }
        for traceparent in hostile::traceparents() {
            send_below(&mut nats, &traceparent, &mut sent).await;
            self.put_good(Some((&mut nats, &traceparent))).await?;
        }
        let odd = self.submit(load::PROBED, 1, |_| hostile::odd_orders()).await;
        let good = self.put_good(None).await?;
        let outcome = Outcome::recovered(self.on_record(&good).await).counts_for(Target::HostileMessages);
        if self.end(&odd).await.is_none() {
            self.wrong.push("a call with NULs in its arguments and in its answer did not end".to_owned());
        }
        self.dead_letters_are(last, &vec![1; sent.kept]).await;
        let note = format!("{} messages, {} of them kept", sent.all, sent.kept);
        Ok(outcome.with(self.longest_pause(pulse).await).noted(note))
    }

    /// Sends the same bytes to everybody; each request must be refused.
    async fn send_garbage(&mut self, nats: &mut RawNats, payload: &[u8], sent: &mut Sent) {
        for subject in hostile::requests() {
            let answer = tokio::time::timeout(ANSWER, nats.request(&subject, payload)).await;
            let answer = answer.ok().and_then(|answer| serde_json::from_slice(&answer).ok());
            if !answer.as_ref().is_some_and(is_refusal) && !hostile::is_valid(&subject, payload) {
                let shown = String::from_utf8_lossy(&payload[..payload.len().min(60)]).into_owned();
                self.wrong.push(format!("{shown:?} on {subject} was answered {answer:?}"));
            }
            sent.note(false);
        }
        for (subject, is_kept) in hostile::publications() {
            nats.publish(&subject, payload).await;
            sent.note(is_kept);
        }
    }

    async fn put_intake(&mut self, message: Bytes) -> anyhow::Result<()> {
        let control = &self.fixture.control;
        let put = reached(async || control.put_intake(Intake::Calls, message.clone(), None).await.is_ok()).await;
        put.map(|_| ()).ok_or_else(|| anyhow::anyhow!("the intake stream took nothing for {PATIENCE:?}"))
    }

    /// Puts a good submission on the intake stream, perhaps with a strange header; returns its key.
    pub(super) async fn put_good(&mut self, strange: Option<(&mut RawNats, &str)>) -> anyhow::Result<String> {
        let call = load::of_fault(self.number(), load::PROBED, &json!({}));
        let body = serde_json::to_vec(&call)?;
        match strange {
            Some((nats, traceparent)) => {
                nats.publish_with(&hostile::intake(Intake::Calls), (subjects::TRACEPARENT, traceparent), &body).await;
            }
            None => self.put_intake(body.into()).await?,
        }
        let key = call.key.unwrap_or_default();
        self.intake_keys.push(key.clone());
        Ok(key)
    }

    /// Waits until a submission of the intake stream runs: a store that was lost just before has its streams again, and what
    /// NATS delivered to a dispatcher that was killed just before was delivered again.
    pub(super) async fn intake_works(&mut self) -> anyhow::Result<()> {
        let good = self.put_good(None).await?;
        if self.on_record_within(DELIVERED_AGAIN, &good).await.is_none() {
            self.wrong.push(format!("a submission did not run within {DELIVERED_AGAIN:?}"));
        }
        Ok(())
    }

    /// How long it takes until the call of a key has ended.
    pub(super) async fn on_record(&self, key: &str) -> Option<Duration> {
        self.on_record_within(PATIENCE, key).await
    }

    async fn on_record_within(&self, patience: Duration, key: &str) -> Option<Duration> {
        let observer = &self.fixture.observer;
        reached_within(patience, async || match observer.call_of_key(key).await.flatten() {
            Some(call) => observer.ended(call).await == Some(true),
            None => false,
        })
        .await
    }

    pub(super) async fn last_dead_letter(&self) -> anyhow::Result<i64> {
        let mut last = None;
        reached(async || {
            last = self.fixture.observer.last_dead_letter().await;
            last.is_some()
        })
        .await;
        last.ok_or_else(|| anyhow::anyhow!("the database did not answer for {PATIENCE:?}"))
    }

    /// One row for each rejected message, with so many errors each.
    async fn dead_letters_are(&mut self, last: i64, wanted: &[i32]) {
        let mut found = Vec::new();
        reached_within(PATIENCE, async || {
            found = self.fixture.observer.dead_letters_after(last).await.unwrap_or_default();
            found.len() >= wanted.len()
        })
        .await;
        // More of them would come at once.
        tokio::time::sleep(10 * LOOK).await;
        found = self.fixture.observer.dead_letters_after(last).await.unwrap_or(found);
        if found != wanted {
            let (rows, messages) = (found.len(), wanted.len());
            self.wrong.push(format!("{rows} dead letters for {messages} rejected messages, with errors {found:?}"));
        }
    }
}

/// Hostile messages so far.
#[derive(Default)]
struct Sent {
    all: usize,
    /// A row of `dead_letters` keeps so many of them.
    kept: usize,
}

impl Sent {
    fn note(&mut self, is_kept: bool) {
        self.all += 1;
        self.kept += usize::from(is_kept);
    }
}

/// Sends half a message to everybody, below a strange trace context.
async fn send_below(nats: &mut RawNats, traceparent: &str, sent: &mut Sent) {
    let requests = hostile::requests().into_iter().map(|subject| (subject, false));
    for (subject, is_kept) in requests.chain(hostile::publications()) {
        nats.publish_with(&subject, (subjects::TRACEPARENT, traceparent), b"{").await;
        sent.note(is_kept);
    }
}

/// An error, or the answer to a submission that was rejected.
fn is_refusal(answer: &Value) -> bool {
    answer["code"].is_string() || answer["status"] == "rejected"
}
