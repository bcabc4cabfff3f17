//! The tools `place_order` and `send_receipt`: what must not happen twice, whatever is killed meanwhile.

use std::time::Duration;

use redial_worker::{Context, Effect, RetryPolicy, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{POOL, warehouse::Warehouse};

/// What to order.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    /// What, by name
    item: String,
    /// How many
    #[schemars(range(min = 1, max = 1000))]
    quantity: u32,
}

/// Whom to send a receipt to.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Receipt {
    /// A mail address
    to: String,
}

/// The end of either: a word for the model.
#[derive(Debug, Serialize)]
struct Done {
    status: &'static str,
}

/// Keyed: the warehouse knows a repeated order by its key.
pub(crate) fn place_order(warehouse: Warehouse) -> Tool {
    let place = move |context: Context, order: Order| {
        let warehouse = warehouse.clone();
        async move {
            let order = json!({"tool": context.tool, "order": order});
            warehouse.deliver(&context.idempotency_key, order).await.map_err(no_answer)?;
            Ok::<_, ToolError>(Done { status: "ordered" })
        }
    };
    keyed(Tool::new("place_order", place).describe("Orders an item from the warehouse."))
}

/// Keyed, too.
pub(crate) fn send_receipt(warehouse: Warehouse) -> Tool {
    let send = move |context: Context, receipt: Receipt| {
        let warehouse = warehouse.clone();
        async move {
            let receipt = json!({"tool": context.tool, "receipt": receipt});
            warehouse.write_to(&context.idempotency_key, receipt).await.map_err(no_answer)?;
            Ok::<_, ToolError>(Done { status: "sent" })
        }
    };
    keyed(Tool::new("send_receipt", send).describe("Sends the receipt of the last order by mail."))
}

/// Safe to repeat, and soon: whoever orders waits for it.
fn keyed(tool: Tool) -> Tool {
    let retry = RetryPolicy { initial_ms: 100, ..RetryPolicy::default() };
    tool.effect(Effect::Keyed).pool(POOL).timeout(Duration::from_secs(60)).retry(retry)
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err wants")]
fn no_answer(error: std::io::Error) -> ToolError {
    ToolError::unavailable(format!("the warehouse does not answer: {error}"))
}
