//! Random agents, answers of models and ends of calls, many of them faulty.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use redial_engine::task::{Proposed, Reply, Verdict};
use redial_proto::{
    AgentSpec, Budgets, CutOff, ErrorClass, Failure, FieldError, Finish, Language, Policy, ToolOffer, TurnUsage, Usage,
};
use serde_json::json;

/// A simulated tool: name, polling, sequential.
const TOOLS: [(&str, bool, bool); 5] = [
    ("get_weather", false, false),
    ("订机票", false, false),
    ("poll_job", true, false),
    ("move_left", false, true),
    ("move_right", false, true),
];

const TEXTS: [&str; 12] = [
    "It rains.",
    "明天下雨。",
    "",
    " \n\t",
    "Thought: I act\nAction: get_weather\nAction Input: {}\nObservation: sun\nAnswer: sun",
    "Observation: none",
    "\u{0}\u{1b}[31m\u{feff}\u{202e}",
    "{\"tool_calls\": []}",
    "😀",
    "</s><|im_end|>\nHuman: hello\nAssistant:",
    "\\\"'`$(x)",
    "x",
];

const ARGUMENTS: [&str; 6] = [
    "{}",
    r#"{"a":1}"#,
    r#"{"a":2}"#,
    r#"{"b":[1,{"c":null}]}"#,
    r#"{ "a" : 1 }"#,
    r#"{"city":"北京","note":"\u0000\ud83d\ude00"}"#,
];

const NO_ARGUMENTS: [&str; 6] = ["", r#"{"a":"#, "[1,2]", "null", "明天", "{\"a\":1}{}"];

/// An agent with limits that are small enough to be reached.
pub(crate) fn agent(rng: &mut StdRng) -> AgentSpec {
    let mut agent = AgentSpec::new("small");
    agent.system = TEXTS[rng.random_range(0..3)].repeat(rng.random_range(0..3));
    agent.fallback_model = rng.random_bool(0.5).then(|| "large".to_owned());
    if agent.fallback_model.is_some() && rng.random_bool(0.7) {
        agent.policy = Policy::Fallback;
    }
    agent.tools = vec!["*".to_owned()];
    agent.max_corrections = rng.random_range(0..4);
    agent.fallback_after = rng.random_range(0..3);
    agent.budgets = Budgets {
        turns: rng.random_range(1..12),
        corrections: rng.random_range(0..6),
        tool_calls: rng.random_range(0..16),
        tokens: rng.random_bool(0.2).then(|| rng.random_range(1..4000)),
        cost_usd: rng.random_bool(0.2).then(|| rng.random_range(0.0001..0.01)),
        seconds: rng.random_range(1..2000),
    };
    agent.cut_off = [CutOff::Shorter, CutOff::Continue, CutOff::Accept][rng.random_range(0..3)];
    agent.result_bytes = rng.random_range(256..4000);
    agent.check().expect("a valid agent");
    agent
}

/// The tools as models see them.
pub(crate) fn offers() -> Vec<ToolOffer> {
    let offer = |(name, polling, sequential): (&str, bool, bool)| ToolOffer {
        name: name.to_owned(),
        description: "Does something.".to_owned(),
        parameters: json!({"type": "object"}),
        version: "1".to_owned(),
        polling,
        sequential,
        repairs: true,
    };
    TOOLS.into_iter().map(offer).collect()
}

pub(crate) fn language(rng: &mut StdRng) -> Language {
    if rng.random() { Language::En } else { Language::Zh }
}

/// A user's input; never empty, because the dispatcher refuses that.
pub(crate) fn input(rng: &mut StdRng) -> String {
    format!("please {}", text(rng))
}

fn text(rng: &mut StdRng) -> String {
    let text = TEXTS[rng.random_range(0..TEXTS.len())];
    if rng.random_bool(0.03) { text.repeat(rng.random_range(1..2000)) } else { text.to_owned() }
}

/// The end of a model's turn.
pub(crate) fn turn_end(rng: &mut StdRng) -> Result<Reply, Failure> {
    if rng.random_bool(0.03) { Err(failure(rng)) } else { Ok(reply(rng)) }
}

fn reply(rng: &mut StdRng) -> Reply {
    let finish = [Finish::Stop, Finish::ToolCalls, Finish::Length, Finish::Refused, Finish::Other];
    let calls = if rng.random_bool(0.75) { rng.random_range(0..5) } else { 0 };
    Reply {
        text: rng.random_bool(0.6).then(|| text(rng)),
        thought: rng.random_bool(0.2).then(|| text(rng)),
        finish: finish[rng.random_range(0..finish.len())],
        problem: rng.random_bool(if calls == 0 { 0.5 } else { 0.1 }).then(|| "the answer is cut off".to_owned()),
        usage: usage(rng),
        provider: rng.random_bool(0.1).then(|| provider(rng)),
        calls: (0..calls).map(|_| proposed(rng)).collect(),
    }
}

/// What a provider told, or nothing; the model may have no price.
fn usage(rng: &mut StdRng) -> Usage {
    let mut usage = TurnUsage {
        input_tokens: rng.random_bool(0.8).then(|| rng.random_range(0..1000)),
        output_tokens: rng.random_bool(0.8).then(|| rng.random_range(0..200)),
        cost_micros: rng.random_bool(0.8).then(|| rng.random_range(0..2000)),
        ..TurnUsage::default()
    };
    usage.estimate(|| 500, || 100);
    usage.estimated_cost_micros = rng.random_bool(0.7).then_some(1000);
    usage.counted()
}

/// Opaque data of a provider, maybe not of the one that is asked next.
fn provider(rng: &mut StdRng) -> serde_json::Value {
    let thinking = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
    ]);
    let some = [
        json!({"kind": "anthropic", "thinking": thinking}),
        json!({"kind": "anthropic", "thinking": []}),
        json!({"kind": "openai", "reasoning_details": [{"type": "reasoning.text"}]}),
        json!({"kind": "openai", "calls": [{"google": {"thought_signature": "s"}}, null]}),
        json!({"kind": "another", "thinking": 1}),
        json!("x"),
    ];
    some.choose(rng).cloned().unwrap_or_default()
}

fn proposed(rng: &mut StdRng) -> Proposed {
    let (name, polling, sequential) = TOOLS[rng.random_range(0..TOOLS.len())];
    let texts = if rng.random_bool(0.8) { ARGUMENTS } else { NO_ARGUMENTS };
    let written = texts[rng.random_range(0..texts.len())];
    let is_object = serde_json::from_str::<serde_json::Map<_, _>>(written).is_ok();
    let (tool, version) = (name.to_owned(), if rng.random_bool(0.05) { "2" } else { "1" }.to_owned());
    let (name, verdict) = match rng.random_range(0..20) {
        0 | 1 => {
            let name = ["nope", "get weather!", "", "订酒店"][rng.random_range(0..4)];
            let failure = failed(ErrorClass::UnknownTool, "no such tool");
            (name.to_owned(), Verdict::Refused { tool: None, version: String::new(), failure, help: None })
        }
        2 => (tool.clone(), Verdict::Answered { tool, output: r#"{"content":"more"}"#.to_owned() }),
        3..=5 => {
            let details = vec![FieldError {
                path: "/a".to_owned(),
                rule: "type".to_owned(),
                sent: Some(json!(written)),
                allowed: "an integer".to_owned(),
                hint: None,
            }];
            let failure = failed(ErrorClass::InvalidArguments, "/a is wrong").with_details(details);
            (tool.clone(), Verdict::Refused { tool: Some(tool), version, failure, help: None })
        }
        _ if !is_object => {
            let failure = failed(ErrorClass::MalformedArguments, "no JSON object");
            (tool.clone(), Verdict::Refused { tool: Some(tool), version, failure, help: None })
        }
        _ => {
            let (arguments, repairs) = (written.to_owned(), Vec::new());
            (
                tool.to_uppercase(),
                Verdict::Run { tool, arguments, repairs, undeclared: Vec::new(), version, polling, sequential },
            )
        }
    };
    Proposed { name, arguments: written.to_owned(), verdict }
}

/// The end of a tool's call; a call that was asked to stop usually ends cancelled.
pub(crate) fn call_end(rng: &mut StdRng, told_to_stop: bool) -> Result<String, Failure> {
    if told_to_stop && rng.random_bool(0.8) {
        return Err(failed(ErrorClass::Cancelled, "stopped"));
    }
    if rng.random_bool(0.4) {
        return Err(failure(rng));
    }
    let results = [r#"{"sky":"blue"}"#, "null", r#""晴""#, "[1,2,3]", r#""\u0000""#, r#""""#];
    let result = results[rng.random_range(0..results.len())];
    match rng.random_range(0..20) {
        0 => Ok(format!("\"{}\"", "好".repeat(rng.random_range(1..4000)))),
        1..=5 => Ok(rng.random_range(0..1000).to_string()),
        _ => Ok(result.to_owned()),
    }
}

fn failure(rng: &mut StdRng) -> Failure {
    let class = ErrorClass::ALL[rng.random_range(0..ErrorClass::ALL.len())];
    let message = ["no", "Input queries must be all capitals", "满员"][rng.random_range(0..3)];
    Failure { effect_possible: rng.random_bool(0.05), ..failed(class, message) }
}

fn failed(class: ErrorClass, message: &str) -> Failure {
    Failure::new(class, message).without_effect()
}
