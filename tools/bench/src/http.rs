//! Case (l): the load of the other cases through a gateway.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::{
    fleet::Fleet,
    load::{ECHO, Load, PATIENCE, arguments, percentiles},
    plan::Plan,
    samples::{Metric, Samples},
};

/// Lines of one piece of a body.
const LINES: u32 = 500;

/// Measures a fleet over NATS and over HTTP, in this order, which the caller changes from round to round by `http_first`.
pub(crate) async fn round(
    fleet: &mut Fleet,
    load: &Load<'_>,
    plan: &Plan,
    samples: &mut Samples,
    http_first: bool,
) -> anyhow::Result<()> {
    let http = Http::new(&fleet.add_gateway().await?)?;
    http.sequential(50).await?;
    for over_http in [http_first, !http_first] {
        let (rate, latencies) = if over_http {
            let submitted = Load::begin(plan.calls);
            http.submit(plan.calls).await?;
            (load.rate(&submitted).await?, http.sequential(plan.sequential).await?)
        } else {
            (load.throughput(plan.calls).await?, load.sequential(plan.sequential).await?)
        };
        let (p50, _) = percentiles(&latencies);
        let (rates, p50s) =
            if over_http { (Metric::CallsHttp, Metric::P50Http) } else { (Metric::CallsNats, Metric::P50Nats) };
        samples.add(rates, rate);
        samples.add(p50s, p50);
    }
    Ok(())
}

struct Http {
    client: reqwest::Client,
    calls: String,
}

impl Http {
    fn new(gateway: &str) -> anyhow::Result<Self> {
        redial_worker::install_crypto();
        let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        Ok(Self { client, calls: format!("{gateway}/v1/calls") })
    }

    /// Submits calls as one stream of lines, and reads what became of each. The gateway has 8 requests to the dispatchers
    /// under way for a stream, as many as [`Load::submit`] has. Theirs are full; its requests have the lines that have
    /// arrived, at most 500: half of that on average.
    async fn submit(&self, calls: u32) -> anyhow::Result<()> {
        let pieces = (0..calls).step_by(LINES as usize).map(move |from| {
            let line = |n| format!("{{\"tool\":\"{ECHO}\",\"arguments\":{}}}\n", arguments(n));
            Ok::<_, std::io::Error>(Bytes::from((from..calls.min(from + LINES)).map(line).collect::<String>()))
        });
        let request = self.client.post(&self.calls).header("content-type", "application/x-ndjson");
        let answer = request.body(reqwest::Body::wrap_stream(stream::iter(pieces))).send().await?;
        anyhow::ensure!(answer.status().is_success(), "the gateway answered {}", answer.status());
        let (mut pieces, mut accepted) = (answer.bytes_stream(), 0);
        while let Some(piece) = pieces.next().await {
            accepted += line_ends(&piece?);
        }
        anyhow::ensure!(accepted == calls as usize, "{accepted} of {calls} lines were answered");
        Ok(())
    }

    /// Latencies of calls that are submitted and waited for in one request, sorted.
    async fn sequential(&self, calls: u32) -> anyhow::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        for n in 0..calls {
            let body = json!({"tool": ECHO, "arguments": serde_json::from_str::<serde_json::Value>(&arguments(n))?});
            let began = Instant::now();
            let request = self.client.post(&self.calls).header("prefer", "wait=10").json(&body);
            let answer = request.timeout(PATIENCE).send().await?;
            anyhow::ensure!(answer.status() == 200, "the gateway answered {}", answer.status());
            answer.bytes().await?;
            latencies.push(began.elapsed());
        }
        latencies.sort();
        Ok(latencies)
    }
}

fn line_ends(piece: &[u8]) -> usize {
    piece.split(|byte| *byte == b'\n').count() - 1
}
