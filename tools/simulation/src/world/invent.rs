//! Agents, tools, replies of models and outputs of tools.

use std::sync::Arc;

use redial_engine::tools::{RegisteredTool, Tools};
use redial_proto::{AgentSpec, Budgets, Finish, ReplyCall, ToolSpec, TurnReply, TurnUsage, turn};
use serde_json::json;

use crate::random::Random;

/// The tools of agents: name, polling, sequential.
const TOOLS: [(&str, bool, bool); 4] =
    [("look", false, false), ("watch", true, false), ("move", false, true), ("turn", true, true)];

/// What the user of every task wants.
pub(super) const INPUT: &str = "please";

/// Makes an agent with small budgets, and one with a fallback model and a very short time budget; as JSON.
pub(super) fn agents() -> [String; 2] {
    let mut plain = AgentSpec { tools: vec!["*".to_owned()], result_bytes: 256, ..AgentSpec::new("small") };
    plain.budgets = Budgets { turns: 4, corrections: 2, tool_calls: 5, seconds: 1_800, ..Budgets::default() };
    let mut hurried = plain.clone();
    hurried.fallback_model = Some("large".to_owned());
    "be brief".clone_into(&mut hurried.system);
    hurried.budgets.seconds = 60;
    [plain, hurried].map(|agent| serde_json::to_string(&agent).unwrap_or_default())
}

/// Makes the registered tools and models.
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
    specs.filter_map(|spec| Some((spec.name.clone(), Arc::new(RegisteredTool::new(spec).ok()?)))).collect()
}

/// Makes what a model replies in a turn, as JSON: always the same for the same seed.
pub(super) fn reply(seed: u64) -> String {
    let mut random = Random::new(seed);
    let usage =
        TurnUsage { input_tokens: Some(10), output_tokens: Some(5), cost_micros: Some(1), ..TurnUsage::default() };
    let mut reply = TurnReply { finish: Finish::Stop, usage, ..TurnReply::default() };
    match random.below(8) {
        0..=2 => reply.text = Some("done".to_owned()),
        3 => {}
        _ => {
            reply.finish = Finish::ToolCalls;
            reply.calls = (0..=random.below(3)).map(|_| proposed(&mut random)).collect();
            if random.below(8) == 0 {
                let seq = 2 + random.below(8);
                reply.calls.extend([0, 10].map(|offset| read_result(seq, offset)));
            }
        }
    }
    serde_json::to_string(&reply).unwrap_or_default()
}

/// Makes a call that a model proposes: of a tool, with wrong arguments, of an unknown tool, or of `read_result`.
fn proposed(random: &mut Random) -> ReplyCall {
    let (tool, ..) = TOOLS[random.below(4) as usize];
    let (name, arguments) = match random.below(12) {
        0 => return read_result(2 + random.below(8), 10),
        1 => (tool, "{\"a\":\"x\"}".to_owned()),
        2 => ("nothing", "{}".to_owned()),
        _ => (tool, format!("{{\"a\":{}}}", random.below(3))),
    };
    ReplyCall { name: name.to_owned(), arguments }
}

/// Makes a call that reads a part of the result of the first call of an assistant message. `seq`: the message's
/// sequence number.
fn read_result(seq: u32, offset: u32) -> ReplyCall {
    let arguments = format!("{{\"call_id\":\"c{seq}_1\",\"offset\":{offset}}}");
    ReplyCall { name: "read_result".to_owned(), arguments }
}

/// Makes the output of a tool's call, as JSON: of one call in four it is too long to be shown whole to a model.
pub(super) fn output(call: u128) -> String {
    let text = if call % 4 == 3 { "x".repeat(400) } else { String::new() };
    format!("{{\"n\":{call},\"text\":\"{text}\"}}")
}
