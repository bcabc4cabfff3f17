//! Corrections: how often a tool's calls failed in a row, and what follows from that.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{Failure, Policy, TaskCode, TaskDecision};

use super::{
    event::Proposed,
    state::{Calling, Chain, Model, Phase, Stop},
    step::StepBuilder,
    turn_call::{Status, TurnCall},
};

/// The chain of calls of tools that do not exist: a model that corrects a name calls another tool.
const UNKNOWN_TOOLS: &str = "";

impl StepBuilder<'_> {
    /// Returns how often the model may correct a call that has just failed.
    pub(super) fn corrections_left(&self, failure: &Failure, call: &TurnCall) -> u32 {
        let chain = if call.is_of_unknown_tool(failure) { UNKNOWN_TOOLS } else { &call.tool };
        let before = self.task.chains.get(chain).map_or(0, |chain| chain.failures);
        let of_task = self.context.agent.budgets.corrections.saturating_sub(self.task.corrections);
        self.context.agent.max_corrections.saturating_sub(before).min(of_task)
    }

    /// Counts the calls of a reply that correct earlier ones: one for each tool.
    pub(super) fn count_corrections(&mut self, proposed: &[Proposed]) {
        let tools: BTreeSet<&str> = proposed.iter().map(Proposed::tool).collect();
        let open = |tool: &&&str| self.task.chains.contains_key(**tool);
        let mut corrected = tools.iter().filter(open).count();
        corrected += usize::from(self.task.chains.contains_key(UNKNOWN_TOOLS));
        self.task.corrections = self.task.corrections.saturating_add(u32::try_from(corrected).unwrap_or(u32::MAX));
    }

    /// Decides what comes next, once every call of a turn is answered.
    pub(super) fn turn_answered(&mut self, calling: &Calling) -> Phase {
        let used_up = self.update_chains(calling);
        let turn = calling.turn + 1;
        match calling.stop {
            Some(Stop::Cancel) => return self.end_cancelled(),
            Some(Stop::Limit(code)) => return self.ask_for_last_answer(turn, code, None),
            None => {}
        }
        if self.fall_back(used_up.as_deref()) {
            return self.ask(turn);
        }
        if let Some(tool) = used_up {
            let tool = Some(tool.as_str()).filter(|tool| *tool != UNKNOWN_TOOLS);
            return self.ask_for_last_answer(turn, TaskCode::CorrectionsExhausted, tool);
        }
        if calling.over_budget {
            return self.ask_for_last_answer(turn, TaskCode::ToolCallsExhausted, None);
        }
        self.go_back(calling);
        self.ask(turn)
    }

    /// Makes chains longer, or ends them; returns a tool whose corrections are used up.
    fn update_chains(&mut self, calling: &Calling) -> Option<String> {
        let mut failed = BTreeMap::<String, Vec<String>>::new();
        let mut called_known = false;
        for call in &calling.calls {
            let chain = match call.status {
                Status::Correctable { unknown_tool: true } => UNKNOWN_TOOLS,
                Status::Correctable { unknown_tool: false } => &call.tool,
                _ => {
                    called_known = true;
                    continue;
                }
            };
            failed.entry(chain.to_owned()).or_default().push(call.id.clone());
        }
        let ended = |tool: &str| succeeded(calling, tool) || (tool == UNKNOWN_TOOLS && called_known);
        let ended: Vec<String> = self.task.chains.keys().filter(|tool| ended(tool)).cloned().collect();
        for tool in ended.iter().filter(|tool| !failed.contains_key(*tool)) {
            self.task.chains.remove(tool);
        }
        let task_used_up = self.task.corrections >= self.context.agent.budgets.corrections;
        let mut used_up = None;
        for (tool, calls) in failed {
            let chain = self.task.chains.entry(tool.clone()).or_default();
            chain.failures += 1;
            chain.calls.extend(calls);
            if chain.failures > self.context.agent.max_corrections || task_used_up {
                used_up.get_or_insert(tool);
            }
        }
        used_up
    }

    /// Hands the turn to the fallback model if the agent's policy allows it; true if it did. What failed is removed from
    /// the models' view, so that it does not mislead the stronger one; the record keeps it.
    fn fall_back(&mut self, used_up: Option<&str>) -> bool {
        let (Policy::Fallback, Model::First, Some(fallback)) =
            (self.context.agent.policy, &self.task.model, &self.context.agent.fallback_model)
        else {
            return false;
        };
        let due = |(tool, chain): &(&String, &Chain)| {
            chain.failures > self.context.agent.fallback_after || used_up == Some(tool.as_str())
        };
        let Some((tool, _)) = self.task.chains.iter().find(due) else { return false };
        let tool = tool.clone();
        let chain = self.task.chains.remove(&tool).unwrap_or_default();
        let what = if tool == UNKNOWN_TOOLS { "tools that do not exist" } else { &tool };
        let because = match chain.failures {
            1 => format!("a call of {what} failed"),
            n => format!("calls of {what} failed in {n} turns in a row"),
        };
        self.task.carried.pruned.extend(chain.calls.iter().cloned());
        let decision = TaskDecision::Fallback { model: fallback.clone(), because, pruned: chain.calls };
        self.out.decisions.push(decision);
        self.task.model = Model::FallbackFor(tool);
        true
    }

    /// Hands the next turn back to the agent's model, once the fallback model did what it was called for.
    fn go_back(&mut self, calling: &Calling) {
        let Model::FallbackFor(tool) = &self.task.model else { return };
        let any = tool == UNKNOWN_TOOLS && calling.calls.iter().any(|call| call.status == Status::Succeeded);
        if any || succeeded(calling, tool) {
            self.task.model = Model::First;
            self.out.decisions.push(TaskDecision::Returned { model: self.context.agent.model.clone() });
        }
    }
}

fn succeeded(calling: &Calling, tool: &str) -> bool {
    calling.calls.iter().any(|call| call.status == Status::Succeeded && call.tool == tool)
}
