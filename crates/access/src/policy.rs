//! What the users of a tenant may use at all.

use redial_proto::{Budgets, agent};

/// The limits of a tenant. Patterns are those of an agent's tools: `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantPolicy {
    /// Tools; `None`: all.
    pub tools: Option<Vec<String>>,
    /// Models of agents that a user sends; `None`: all.
    pub models: Option<Vec<String>>,
    /// Agents that the dispatchers' file declares; `None`: all.
    pub agents: Option<Vec<String>>,
    /// The most that an agent that a user sends may set.
    pub budgets: BudgetLimits,
}

impl TenantPolicy {
    /// True if its users may call this tool.
    pub fn allows_tool(&self, tool: &str) -> bool {
        allows(self.tools.as_deref(), tool)
    }

    /// True if an agent that a user sends may ask this model.
    pub fn allows_model(&self, model: &str) -> bool {
        allows(self.models.as_deref(), model)
    }

    /// True if its users may call every tool that this pattern can mean.
    pub fn allows_pattern(&self, pattern: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| patterns.iter().any(|allowed| allowed == pattern || allowed == "*"))
    }

    /// True if its users may give tasks to this declared agent.
    pub fn allows_agent(&self, agent: &str) -> bool {
        allows(self.agents.as_deref(), agent)
    }
}

fn allows(patterns: Option<&[String]>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| agent::matches(pattern, name)))
}

/// The most that a budget may be; `None`: no limit. Names and units are those of [`Budgets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// Model turns.
    pub turns: Option<u32>,
    /// Corrections, over all tools.
    pub corrections: Option<u32>,
    /// Tool calls.
    pub tool_calls: Option<u32>,
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Seconds since the task began.
    pub seconds: Option<u32>,
}

impl BudgetLimits {
    /// What exceeds the limits: a line each that names the field, its value and what is allowed. A budget without a value
    /// of its own exceeds a limit.
    pub fn exceeded(&self, budgets: &Budgets) -> Vec<String> {
        let whole = [
            ("turns", Some(budgets.turns.into()), self.turns.map(u64::from)),
            ("corrections", Some(budgets.corrections.into()), self.corrections.map(u64::from)),
            ("tool_calls", Some(budgets.tool_calls.into()), self.tool_calls.map(u64::from)),
            ("tokens", budgets.tokens, self.tokens),
            ("seconds", Some(budgets.seconds.into()), self.seconds.map(u64::from)),
        ];
        let mut found: Vec<String> = whole.into_iter().filter_map(|(name, is, most)| over(name, is, most?)).collect();
        found.extend(self.cost_usd.and_then(|most| over("cost_usd", budgets.cost_usd, most)));
        found
    }

    /// Budgets within the limits: one that was left at its default is bound, one that was set and exceeds a limit is named.
    pub fn within(&self, budgets: Budgets) -> Result<Budgets, Vec<String>> {
        let (defaults, bound) = (Budgets::default(), self.bound(budgets));
        let set = Budgets {
            turns: if budgets.turns == defaults.turns { bound.turns } else { budgets.turns },
            corrections: if budgets.corrections == defaults.corrections {
                bound.corrections
            } else {
                budgets.corrections
            },
            tool_calls: if budgets.tool_calls == defaults.tool_calls { bound.tool_calls } else { budgets.tool_calls },
            tokens: budgets.tokens.or(bound.tokens),
            cost_usd: budgets.cost_usd.or(bound.cost_usd),
            seconds: if budgets.seconds == defaults.seconds { bound.seconds } else { budgets.seconds },
        };
        let exceeded = self.exceeded(&set);
        if exceeded.is_empty() { Ok(bound) } else { Err(exceeded) }
    }

    /// The same, as budgets that a task without any of its own gets: its defaults, where they do not exceed a limit.
    #[must_use]
    pub fn bound(&self, budgets: Budgets) -> Budgets {
        let least = |is: u32, most: Option<u32>| most.map_or(is, |most| is.min(most));
        Budgets {
            turns: least(budgets.turns, self.turns),
            corrections: least(budgets.corrections, self.corrections),
            tool_calls: least(budgets.tool_calls, self.tool_calls),
            tokens: self.tokens.map(|most| budgets.tokens.map_or(most, |is| is.min(most))).or(budgets.tokens),
            cost_usd: self.cost_usd.map(|most| budgets.cost_usd.map_or(most, |is| is.min(most))).or(budgets.cost_usd),
            seconds: least(budgets.seconds, self.seconds),
        }
    }

    /// Values that no budget can have. Each message begins with the path of its field.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let zero = [("turns", self.turns), ("seconds", self.seconds)];
        let zero = zero.into_iter().filter(|(_, most)| *most == Some(0));
        let zero = zero.map(|(name, _)| format!("budgets.{name} is 0; allowed: 1 and more"));
        let cost = self.cost_usd.filter(|cost| !(*cost > 0.0 && cost.is_finite()));
        zero.chain(cost.map(|cost| format!("budgets.cost_usd is {cost}; allowed: more than 0"))).collect()
    }
}

/// The message if a budget exceeds a limit.
fn over<N: PartialOrd + std::fmt::Display + Copy>(name: &str, is: Option<N>, most: N) -> Option<String> {
    match is {
        Some(is) if is <= most => None,
        Some(is) => Some(format!("budgets.{name} is {is}; allowed: at most {most}")),
        None => Some(format!("budgets.{name} is not set; allowed: at most {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_an_agent() {
        let all = TenantPolicy::default();
        assert!(all.allows_tool("x") && all.allows_model("x") && all.allows_agent("x"));
        let some = TenantPolicy {
            tools: Some(vec!["get_*".into(), "search".into()]),
            models: Some(vec![]),
            ..TenantPolicy::default()
        };
        assert!(some.allows_tool("get_rate") && some.allows_tool("search") && !some.allows_tool("research"));
        assert!(!some.allows_model("small") && some.allows_agent("x"));
    }

    #[test]
    fn a_budget_that_exceeds_a_limit_is_named() {
        assert!(BudgetLimits::default().exceeded(&Budgets::default()).is_empty());
        let limits = BudgetLimits {
            turns: Some(20),
            tokens: Some(1000),
            cost_usd: Some(0.5),
            seconds: Some(3600),
            ..BudgetLimits::default()
        };
        assert_eq!(
            limits.exceeded(&Budgets { cost_usd: Some(0.75), ..Budgets::default() }),
            [
                "budgets.turns is 25; allowed: at most 20",
                "budgets.tokens is not set; allowed: at most 1000",
                "budgets.cost_usd is 0.75; allowed: at most 0.5"
            ]
        );
        let bound = limits.bound(Budgets::default());
        assert!(limits.exceeded(&bound).is_empty(), "{bound:?}");
        assert_eq!((bound.turns, bound.tokens, bound.seconds), (20, Some(1000), 3600));
        assert_eq!(limits.within(Budgets::default()), Ok(bound), "what was not set is bound");
        assert_eq!(
            limits.within(Budgets { turns: 21, ..Budgets::default() }),
            Err(vec!["budgets.turns is 21; allowed: at most 20".to_owned()])
        );
        assert_eq!(BudgetLimits::default().bound(Budgets::default()), Budgets::default());
    }
}
