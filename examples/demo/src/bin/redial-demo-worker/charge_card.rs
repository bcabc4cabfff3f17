//! The tool `charge_card`: the bank charges the card at once and confirms later, so a worker can be killed in between.

use std::time::Duration;

use redial_worker::{Context, Tool, ToolEffect, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ledger::Ledger;

/// How long the bank takes to confirm.
const CONFIRMATION: Duration = Duration::from_secs(5);

/// What to charge.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Charge {
    /// The amount in CNY
    #[schemars(range(min = 1, max = 100_000))]
    amount_cny: u32,
}

#[derive(Debug, Serialize)]
struct Confirmation {
    charged_cny: u32,
}

/// Unsafe: the bank accepts no idempotency key, so a second attempt would be a second charge.
pub(crate) fn tool(bank: Ledger) -> Tool {
    let charge = move |context: Context, charge: Charge| {
        let bank = bank.clone();
        async move {
            let recorded = bank.append(&context.idempotency_key, json!({"charge": charge})).await;
            recorded.map_err(|error| ToolError::unavailable(format!("the bank does not answer: {error}")))?;
            tokio::time::sleep(CONFIRMATION).await;
            Ok::<_, ToolError>(Confirmation { charged_cny: charge.amount_cny })
        }
    };
    Tool::new("charge_card", charge).describe("Charges the customer's card.").effect(ToolEffect::Unsafe)
}
