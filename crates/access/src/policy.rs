//! What the users of a tenant may use at all.

use redial_proto::{Budgets, Submission, ToolSpec, agent};

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
    pub calls: CallLimits,
}

impl TenantPolicy {
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

/// The most that a submission may raise what its tool declares to; `None`: not at all. It may always lower it.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// Seconds of an attempt.
    pub timeout_seconds: Option<u64>,
    pub attempts: Option<u32>,
}

impl CallLimits {
    /// Names what a submission sets beyond what its tool declares and the limits allow: a line each with the field, its
    /// value and what is allowed.
    pub fn exceeded(&self, tool: &ToolSpec, submission: &Submission) -> Vec<String> {
        let timeout = self.timeout_seconds.unwrap_or(0).saturating_mul(1_000).max(tool.timeout_ms);
        let attempts = self.attempts.unwrap_or(0).max(tool.retry.max_attempts);
        let set = submission.retry.as_ref().and_then(|retry| retry.max_attempts);
        let rows = [
            ("timeout_ms", submission.timeout_ms, timeout),
            ("retry.max_attempts", set.map(u64::from), attempts.into()),
        ];
        let over = |(name, is, most): (&str, Option<u64>, u64)| {
            is.filter(|is| *is > most).map(|is| format!("{name} is {is}; allowed: at most {most}"))
        };
        rows.into_iter().filter_map(over).collect()
    }

    /// Names values that no call can have. Each message begins with the path of its field.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let timeout = self.timeout_seconds.filter(|seconds| !(1..=MAX_TIMEOUT_SECONDS).contains(seconds));
        let timeout =
            timeout.map(|found| format!("calls.timeout_seconds is {found}; allowed: 1 to {MAX_TIMEOUT_SECONDS}"));
        let attempts = self.attempts.filter(|attempts| !(1..=MAX_ATTEMPTS).contains(attempts));
        let attempts = attempts.map(|found| format!("calls.attempts is {found}; allowed: 1 to {MAX_ATTEMPTS}"));
        timeout.into_iter().chain(attempts).collect()
    }
}

/// As much as any tool or submission may set.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;
const MAX_ATTEMPTS: u32 = 1_000;

/// The most that a budget may be; `None`: no limit. Names and units are those of [`Budgets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    pub turns: Option<u32>,
    /// Corrections, over all tools.
    pub corrections: Option<u32>,
    pub tool_calls: Option<u32>,
    /// Tokens that models read and wrote.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Seconds since the task began.
    pub seconds: Option<u32>,
}

impl BudgetLimits {
    /// Names what exceeds the limits: a line each with the field, its value and what is allowed. A budget without a
    /// value of its own exceeds a limit.
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

    /// Returns budgets within the limits. One that has the default of [`Budgets`] counts as not set and is lowered to
    /// the limit. The error names each other one that exceeds a limit.
    pub fn within(&self, budgets: Budgets) -> Result<Budgets, Vec<String>> {
        let (defaults, bound) = (Budgets::default(), self.bound(budgets));
        let own = |is: u32, default: u32, bound: u32| if is == default { bound } else { is };
        let set = Budgets {
            turns: own(budgets.turns, defaults.turns, bound.turns),
            corrections: own(budgets.corrections, defaults.corrections, bound.corrections),
            tool_calls: own(budgets.tool_calls, defaults.tool_calls, bound.tool_calls),
            tokens: budgets.tokens.or(bound.tokens),
            cost_usd: budgets.cost_usd.or(bound.cost_usd),
            seconds: own(budgets.seconds, defaults.seconds, bound.seconds),
        };
        let exceeded = self.exceeded(&set);
        if exceeded.is_empty() { Ok(bound) } else { Err(exceeded) }
    }

    /// Lowers each budget to its limit.
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

    /// Names values that no budget can have. Each message begins with the path of its field.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let zero = [("turns", self.turns), ("seconds", self.seconds)];
        let zero = zero.into_iter().filter(|(_, most)| *most == Some(0));
        let zero = zero.map(|(name, _)| format!("budgets.{name} is 0; allowed: 1 and more"));
        let cost = self.cost_usd.filter(|cost| !(*cost > 0.0 && cost.is_finite()));
        zero.chain(cost.map(|cost| format!("budgets.cost_usd is {cost}; allowed: more than 0"))).collect()
    }
}

/// Returns a message if a budget exceeds a limit.
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
    fn a_submission_raises_what_its_tool_declares_only_as_far_as_its_tenant_may() {
        let tool = ToolSpec { timeout_ms: 20_000, ..ToolSpec::named("slow") };
        let submission = |timeout_ms: u64, attempts: u32| -> Submission {
            let retry = serde_json::json!({"max_attempts": attempts});
            serde_json::from_value(
                serde_json::json!({"tool": "slow", "arguments": {}, "timeout_ms": timeout_ms, "retry": retry}),
            )
            .unwrap()
        };
        let none = CallLimits::default();
        assert!(none.exceeded(&tool, &submission(20_000, 6)).is_empty(), "as the tool declares");
        assert_eq!(
            none.exceeded(&tool, &submission(20_001, 1000)),
            ["timeout_ms is 20001; allowed: at most 20000", "retry.max_attempts is 1000; allowed: at most 6"]
        );
        let some = CallLimits { timeout_seconds: Some(60), attempts: Some(10) };
        assert!(some.exceeded(&tool, &submission(60_000, 10)).is_empty());
        assert_eq!(some.exceeded(&tool, &submission(60_001, 11)).len(), 2);
        let low = CallLimits { timeout_seconds: Some(1), attempts: Some(1) };
        assert!(low.exceeded(&tool, &submission(20_000, 6)).is_empty(), "a tool's own values hold for everybody");
        assert_eq!(CallLimits { timeout_seconds: Some(0), attempts: Some(1001) }.mistakes().len(), 2);
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
        let told = limits.within(Budgets { turns: 21, ..Budgets::default() });
        assert_eq!(told, Err(vec!["budgets.turns is 21; allowed: at most 20".to_owned()]));
        assert_eq!(BudgetLimits::default().bound(Budgets::default()), Budgets::default());
    }
}
