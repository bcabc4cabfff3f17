//! What model turns cost: what providers told, and what had to be estimated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the turns of a task cost. Sums hold what providers told and the estimates of the rest; how much of each sum is an
/// estimate is told beside it. All of it counts for the budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens that models read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens that they wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Price in millionths of a US dollar, of the turns whose model has a price; absent if there is no such turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The part of `input_tokens` that no provider told: estimated from the texts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_input_tokens: u64,
    /// The part of `output_tokens` that no provider told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_output_tokens: u64,
    /// The part of `cost_micros` that was computed from estimated tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_cost_micros: u64,
    /// Turns of models without a price: what they cost is unknown, and no part of `cost_micros`.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub turns_without_price: u32,
}

impl Usage {
    /// Adds what further turns cost.
    pub fn add(&mut self, more: &Self) {
        let sum = |one: u64, other: u64| one.saturating_add(other);
        self.input_tokens = sum(self.input_tokens, more.input_tokens);
        self.output_tokens = sum(self.output_tokens, more.output_tokens);
        self.estimated_input_tokens = sum(self.estimated_input_tokens, more.estimated_input_tokens);
        self.estimated_output_tokens = sum(self.estimated_output_tokens, more.estimated_output_tokens);
        self.estimated_cost_micros = sum(self.estimated_cost_micros, more.estimated_cost_micros);
        self.turns_without_price = self.turns_without_price.saturating_add(more.turns_without_price);
        let cost = sum(self.cost_micros.unwrap_or_default(), more.cost_micros.unwrap_or_default());
        let is_known = self.cost_micros.is_some() || more.cost_micros.is_some();
        // Nothing is not a price that one could state if some turns have none.
        self.cost_micros = is_known.then_some(cost).filter(|cost| *cost > 0 || self.turns_without_price == 0);
    }

    /// Tokens that models read and wrote.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The part of [`Self::tokens`] that is an estimate.
    pub const fn estimated_tokens(&self) -> u64 {
        self.estimated_input_tokens.saturating_add(self.estimated_output_tokens)
    }
}

/// What one turn cost. A number that the provider did not tell is absent, which is not zero; the estimate stands in a
/// field of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnUsage {
    /// Tokens that the model read, as the provider told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that it wrote, as the provider told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Price in millionths of a US dollar; absent if the model has no price, or if a number of tokens that has a price was
    /// not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Estimate of the tokens that the model read, if they were not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_input_tokens: Option<u64>,
    /// Estimate of the tokens that it wrote, if they were not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_output_tokens: Option<u64>,
    /// Price of what was told and estimated, if the model has a price and something had to be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost_micros: Option<u64>,
}

impl TurnUsage {
    /// Adds estimates, in tokens, of what was not told and not estimated yet.
    pub fn estimate(&mut self, input_tokens: impl FnOnce() -> u64, output_tokens: impl FnOnce() -> u64) {
        if self.input_tokens.is_none() {
            self.estimated_input_tokens.get_or_insert_with(input_tokens);
        }
        if self.output_tokens.is_none() {
            self.estimated_output_tokens.get_or_insert_with(output_tokens);
        }
    }

    /// What the turn adds to its task's usage.
    pub fn counted(&self) -> Usage {
        let cost = self.cost_micros.or(self.estimated_cost_micros);
        let estimated =
            |told: Option<u64>, estimate: Option<u64>| estimate.filter(|_| told.is_none()).unwrap_or_default();
        let estimated_input_tokens = estimated(self.input_tokens, self.estimated_input_tokens);
        let estimated_output_tokens = estimated(self.output_tokens, self.estimated_output_tokens);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(estimated_input_tokens),
            output_tokens: self.output_tokens.unwrap_or(estimated_output_tokens),
            cost_micros: cost,
            estimated_input_tokens,
            estimated_output_tokens,
            estimated_cost_micros: estimated(self.cost_micros, self.estimated_cost_micros),
            turns_without_price: u32::from(cost.is_none()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none_yet(turns: &u32) -> bool {
    *turns == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_estimated_and_never_zero() {
        let told =
            TurnUsage { input_tokens: Some(100), output_tokens: Some(0), cost_micros: Some(7), ..TurnUsage::default() };
        let mut half = TurnUsage { output_tokens: None, cost_micros: None, ..told };
        half.estimate(|| 1, || 40);
        half.estimated_cost_micros = Some(9);
        let mut without_price = TurnUsage::default();
        without_price.estimate(|| 10, || 5);
        assert_eq!(half.counted().output_tokens, 40);
        assert_eq!(without_price.counted().cost_micros, None);

        let mut sum = Usage::default();
        for turn in [told, half, without_price] {
            sum.add(&turn.counted());
        }
        let whole = Usage {
            input_tokens: 210,
            output_tokens: 45,
            cost_micros: Some(16),
            estimated_input_tokens: 10,
            estimated_output_tokens: 45,
            estimated_cost_micros: 9,
            turns_without_price: 1,
        };
        assert_eq!(sum, whole);
    }

    #[test]
    fn a_free_model_costs_nothing_and_one_without_a_price_costs_something_unknown() {
        let free = TurnUsage { cost_micros: Some(0), ..TurnUsage::default() }.counted();
        let mut sum = Usage::default();
        sum.add(&free);
        assert_eq!(sum.cost_micros, Some(0));
        sum.add(&TurnUsage::default().counted());
        assert_eq!((sum.cost_micros, sum.turns_without_price), (None, 1));
        sum.add(&Usage { cost_micros: Some(3), ..free });
        assert_eq!((sum.cost_micros, sum.turns_without_price), (Some(3), 1));
    }
}
