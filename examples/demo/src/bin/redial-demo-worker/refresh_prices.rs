//! The tool `refresh_prices`: slow, so that a worker can be killed in the middle of it.

use std::time::Duration;

use redial_worker::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::POOL;

/// What one airline takes.
const EACH: Duration = Duration::from_millis(300);

/// Whose prices to ask for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Request {
    /// How many airlines to ask, one after the other.
    #[schemars(range(min = 1, max = 50))]
    airlines: u32,
}

#[derive(Debug, Serialize)]
struct Refreshed {
    refreshed: u32,
}

/// Idempotent: prices that were asked for twice are as fresh, so another worker may simply begin again.
pub(crate) fn tool() -> Tool {
    Tool::new("refresh_prices", refresh)
        .describe("Asks airlines for their prices; takes 0.3 s for each.")
        .effect(Effect::Idempotent)
        .pool(POOL)
        .timeout(Duration::from_secs(30))
}

async fn refresh(request: Request) -> Refreshed {
    for _airline in 0..request.airlines {
        tokio::time::sleep(EACH).await;
    }
    Refreshed { refreshed: request.airlines }
}
