//! A hostile client: it sends what a correct one never would, and everything that it receives is searched.

use std::time::Duration;

use redial_testkit::{Ear, RawNats};

use crate::access::Login;

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);
/// Where somebody hostile listens. Of these the server lets nobody hear anything of others.
const EVERYWHERE: [&str; 13] = [
    ">",
    "redial.>",
    "redial.events.>",
    "redial.events.acme.>",
    "redial.api.acme.>",
    "redial.gateway.acme.>",
    "redial.intake.>",
    "redial.ctl.>",
    "redial.jobs.>",
    "redial.results.>",
    "_INBOX_client.acme.alice.>",
    "_R_.>",
    "$JS.>",
];

pub(crate) struct Stranger {
    nats: RawNats,
    inbox: String,
    ear: Ear,
}

impl Stranger {
    /// Connects, and subscribes to its own inbox.
    pub(crate) async fn connect(server: &str, login: &Login, ear: Ear) -> anyhow::Result<Self> {
        let nats = RawNats::open(&login.url(server), &login.inbox).await.map_err(anyhow::Error::msg)?;
        Ok(Self { nats, inbox: login.inbox.clone(), ear })
    }

    /// Subscribes to whatever others receive.
    pub(crate) async fn subscribe_everywhere(&mut self) -> anyhow::Result<()> {
        let lines = EVERYWHERE.iter().zip(1..).map(|(subject, id)| format!("SUB {subject} {id}\r\n"));
        self.nats.write(lines.collect::<String>().as_bytes()).await.map_err(anyhow::Error::msg)?;
        self.flush().await
    }

    /// Publishes; an empty reply subject is none.
    pub(crate) async fn publish(&mut self, subject: &str, reply: &str, body: &[u8]) -> anyhow::Result<()> {
        self.nats.write(&RawNats::message(subject, reply, "", body)).await.map_err(anyhow::Error::msg)
    }

    /// Returns a reply subject of its own.
    pub(crate) fn inbox(&self) -> String {
        format!("{}.answers", self.inbox)
    }

    pub(crate) fn refusals(&self) -> usize {
        self.nats.refusals.len()
    }

    /// Waits until the server has read everything that was sent.
    pub(crate) async fn flush(&mut self) -> anyhow::Result<()> {
        self.nats.flush().await.map_err(anyhow::Error::msg)?;
        self.hear();
        Ok(())
    }

    fn hear(&mut self) {
        for message in self.nats.received.drain(..) {
            self.ear.hear(&message.subject, message.header.as_bytes());
            self.ear.hear(&message.subject, message.body.as_bytes());
        }
    }
}

/// Listens everywhere for the whole run, and connects again whenever the server was gone, or had nothing to say for a minute.
pub(crate) fn eavesdrop(server: &str, login: Login, ear: Ear) {
    let server = server.to_owned();
    tokio::spawn(async move {
        loop {
            if let Ok(mut stranger) = Stranger::connect(&server, &login, ear.clone()).await
                && stranger.subscribe_everywhere().await.is_ok()
            {
                while stranger.nats.step().await.is_ok() {
                    stranger.hear();
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}
