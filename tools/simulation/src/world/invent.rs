//! Agents, tools, failures, answers of models, and results of tools.

use std::sync::Arc;

use redial_engine::tools::{Tool, Tools};
use redial_proto::{AgentSpec, Budgets, ErrorClass, Failure, Finish, ReplyCall, ToolSpec, TurnReply, Usage, turn};
use serde_json::json;

use crate::random::Random;

/// The tools of agents: name, polling, sequential.
const TOOLS: [(&str, bool, bool); 4] =
    [("look", false, false), ("watch", true, false), ("move", false, true), ("turn", true, true)];

/// An agent with small budgets, and one with a fallback model and hardly any time; as JSON.
pub(super) fn agents() -> [String; 2] {
    let mut plain = AgentSpec { tools: vec!["*".to_owned()], result_bytes: 256, ..AgentSpec::new("small") };
    plain.budgets = Budgets { turns: 4, corrections: 2, tool_calls: 5, seconds: 1_800, ..Budgets::default() };
    let mut hurried = plain.clone();
    hurried.fallback_model = Some("large".to_owned());
    "be brief".clone_into(&mut hurried.system);
    hurried.budgets.seconds = 60;
    [plain, hurried].map(|agent| serde_json::to_string(&agent).unwrap_or_default())
}

/// The registered tools and models.
pub(super) fn tools() -> Tools {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let tool = |(name, polling, sequential): (&str, bool, bool)| ToolSpec {
        parameters: parameters.clone(),
        polling,
        sequential,
        ..ToolSpec::named(name)
    };
    let model = |name: &str| ToolSpec { pool: turn::POOL.to_owned(), ..ToolSpec::named(turn::tool_name(name)) };
    let specs = TOOLS.into_iter().map(tool).chain(["small", "large"].map(model));
    specs.filter_map(|spec| Some((spec.name.clone(), Arc::new(Tool::new(spec).ok()?)))).collect()
}

/// The failures of a class: without and with a possible effect.
pub(super) fn failures(class: ErrorClass) -> [Failure; 2] {
    let failure = Failure::new(class, "it failed");
    [failure.clone().without_effect(), failure]
}

/// ItemKind a model answers in a turn, as JSON. Always the same for the same turn of the same task.
pub(super) fn reply(seed: u64) -> String {
    let mut random = Random::new(seed);
    let usage = Usage { input_tokens: 10, output_tokens: 5, cost_micros: 1 };
    let mut reply = TurnReply { finish: Finish::Stop, usage, ..TurnReply::default() };
    match random.below(8) {
        0..=2 => reply.text = Some("done".to_owned()),
        3 => {}
        _ => {
            reply.finish = Finish::ToolCalls;
            reply.calls = (0..=random.below(3)).map(|_| proposed(&mut random)).collect();
        }
    }
    serde_json::to_string(&reply).unwrap_or_default()
}

/// A call as a model writes it: to a tool, with wrong arguments, to no tool, or to read on in an earlier result.
fn proposed(random: &mut Random) -> ReplyCall {
    let (tool, ..) = TOOLS[random.below(4) as usize];
    let (name, arguments) = match random.below(12) {
        0 => ("read_result", format!("{{\"call_id\":\"c{}_1\",\"offset\":10}}", 2 + random.below(8))),
        1 => (tool, "{\"a\":\"x\"}".to_owned()),
        2 => ("nothing", "{}".to_owned()),
        _ => (tool, format!("{{\"a\":{}}}", random.below(3))),
    };
    ReplyCall { name: name.to_owned(), arguments }
}

/// ItemKind a tool's call gives, as JSON: now and then more than a model is shown at once.
pub(super) fn output(call: u8) -> String {
    let text = if call % 4 == 3 { "x".repeat(400) } else { String::new() };
    format!("{{\"n\":{call},\"text\":\"{text}\"}}")
}
