//! The tool `refresh_prices`: slow, so that a worker can be killed while it runs.

use std::time::Duration;

use redial_worker::{Tool, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long one airline takes to answer.
const LATENCY: Duration = Duration::from_millis(300);

/// Which prices to refresh.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Request {
    /// How many airlines to ask, one after another.
    #[schemars(range(min = 1, max = 50))]
    airlines: u32,
}

#[derive(Debug, Serialize)]
struct Refreshed {
    refreshed: u32,
}

/// Idempotent: asking for prices twice has the same effect as once, so another worker may start over.
pub(crate) fn tool() -> Tool {
    Tool::new("refresh_prices", refresh)
        .describe("Asks airlines for their prices; takes 0.3 s per airline.")
        .effect(ToolEffect::Idempotent)
        .timeout(Duration::from_secs(30))
}

async fn refresh(request: Request) -> Refreshed {
    for _airline in 0..request.airlines {
        tokio::time::sleep(LATENCY).await;
    }
    Refreshed { refreshed: request.airlines }
}
