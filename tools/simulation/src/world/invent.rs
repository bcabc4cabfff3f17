//! Agents, failures and answers of models.

use redial_engine::task::{CallFailure, Proposed, Reply, Verdict};
use redial_proto::{AgentSpec, Budgets, ErrorClass, Failure, Finish, Usage};

use crate::random::Random;

/// An agent with small budgets, and one with a fallback model and hardly any time.
pub(super) fn agents() -> [AgentSpec; 2] {
    let mut plain = AgentSpec::new("small");
    plain.budgets = Budgets { turns: 4, corrections: 2, tool_calls: 5, seconds: 1_800, ..Budgets::default() };
    let mut hurried = plain.clone();
    hurried.fallback_model = Some("large".to_owned());
    "be brief".clone_into(&mut hurried.system);
    hurried.budgets.seconds = 60;
    [plain, hurried]
}

/// The failures of a class: without and with a possible effect.
pub(super) fn failures(class: ErrorClass) -> [Failure; 2] {
    let failure = Failure::new(class, "it failed");
    [failure.clone().without_effect(), failure]
}

/// What a model answers in a turn. Always the same for the same turn of the same task.
pub(super) fn reply(seed: u64) -> Reply {
    let mut random = Random::new(seed);
    let usage = Usage { input_tokens: 10, output_tokens: 5, cost_micros: 1 };
    let mut reply = Reply { finish: Finish::Stop, usage, ..Reply::default() };
    match random.below(8) {
        0..=2 => reply.text = Some("done".to_owned()),
        3 => {}
        _ => {
            reply.finish = Finish::ToolCalls;
            reply.calls = (0..=random.below(3)).map(|_| proposed(&mut random)).collect();
        }
    }
    reply
}

fn proposed(random: &mut Random) -> Proposed {
    let arguments = format!("{{\"a\":{}}}", random.below(3));
    let sequential = random.percent(30);
    let tool = if sequential { "move" } else { "look" }.to_owned();
    let verdict = match random.below(10) {
        0 => Verdict::Answered { tool: tool.clone(), output: "{}".to_owned() },
        1 => Verdict::Refused {
            tool: Some(tool.clone()),
            version: "1".to_owned(),
            failure: failed(ErrorClass::InvalidArguments, false),
        },
        _ => Verdict::Run {
            tool: tool.clone(),
            arguments: arguments.clone(),
            repairs: Vec::new(),
            version: "1".to_owned(),
            polling: random.percent(50),
            sequential,
        },
    };
    Proposed { name: tool, arguments, verdict }
}

/// The end of a call without a result, as its task hears of it.
pub(super) fn failed(class: ErrorClass, unknown: bool) -> CallFailure {
    CallFailure { class, message: "it failed".to_owned(), details: Vec::new(), unknown }
}
