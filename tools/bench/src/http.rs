//! A client of a gateway, for the load of the other cases.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;

use crate::load::{ECHO, PATIENCE, arguments, timed};

/// Lines of one piece of a body.
const LINES: u32 = 500;

pub(crate) struct Http {
    client: reqwest::Client,
    calls: String,
}

impl Http {
    pub(crate) fn new(gateway: &str) -> anyhow::Result<Self> {
        let client = redial_http::direct().tcp_nodelay(true).build()?;
        Ok(Self { client, calls: format!("{gateway}/v1/calls") })
    }

    /// Submits calls as one stream of lines, and reads what became of each. The gateway has 8 requests to the dispatchers
    /// under way for a stream, as many as [`crate::load::Load::submit`] has. Theirs are full; its requests have the lines that have
    /// arrived, at most 500: half of that on average.
    pub(crate) async fn submit(&self, calls: u32) -> anyhow::Result<()> {
        let pieces = (0..calls).step_by(LINES as usize).map(move |from| {
            let line = |n| format!("{{\"tool\":\"{ECHO}\",\"arguments\":{}}}\n", arguments(n));
            Ok::<_, std::io::Error>(Bytes::from((from..calls.min(from + LINES)).map(line).collect::<String>()))
        });
        let request = self.client.post(&self.calls).header("content-type", "application/x-ndjson");
        let answer = request.body(reqwest::Body::wrap_stream(stream::iter(pieces))).send().await?;
        anyhow::ensure!(answer.status().is_success(), "the gateway answered {}", answer.status());
        let accepted = answer.text().await?.lines().count();
        anyhow::ensure!(accepted == calls as usize, "{accepted} of {calls} lines were answered");
        Ok(())
    }

    /// Measures latencies of calls that are submitted and waited for in one request, sorted.
    pub(crate) async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        timed(calls, async |n| {
            let body = format!("{{\"tool\":\"{ECHO}\",\"arguments\":{}}}", arguments(n));
            let request = self.client.post(&self.calls).header("content-type", "application/json").body(body);
            let answer = request.header("prefer", "wait=10").timeout(PATIENCE).send().await?;
            anyhow::ensure!(answer.status() == 200, "the gateway answered {}", answer.status());
            answer.bytes().await?;
            Ok(())
        })
        .await
    }
}
