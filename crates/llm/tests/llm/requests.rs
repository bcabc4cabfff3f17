//! The requests that each provider is sent.

mod properties;

use redial_llm::{Profile, Settings, anthropic, openai, react};
use redial_proto::{Language, Message, Role, TurnRequest};
use serde_json::{Value, json};

use crate::{
    request::{request, tool},
    validators::{self, openai::Rule},
};

fn result(call: &str, content: &str) -> Message {
    Message { call_id: Some(call.to_owned()), ..Message::text(Role::Tool, content) }
}

/// Makes a conversation with everything in it: parallel calls, damaged arguments, a failure, a Chinese tool, a tool
/// that is no longer offered, thoughts of a provider, a message of Redial, a second task.
fn conversation() -> TurnRequest {
    let messages = serde_json::from_str(include_str!("requests/conversation.json")).unwrap();
    TurnRequest { messages, tools: vec![tool("get_weather"), tool("订机票")], ..request() }
}

fn settings() -> Settings {
    let extra = json!({"top_p": 0.9}).as_object().unwrap().clone();
    Settings { max_tokens: Some(1000), temperature: Some(1.5), stream: true, extra, ..Settings::new("big") }
}

#[test]
fn the_request_to_openai() {
    let body = openai::request(&conversation(), &settings());
    validators::openai::accepts(&body, &[]);
    insta::assert_json_snapshot!(body);
}

#[test]
fn the_request_to_anthropic() {
    let body = anthropic::request(&conversation(), &settings());
    validators::anthropic::accepts(&body);
    insta::assert_json_snapshot!(body);
}

#[test]
fn the_request_to_a_text_model() {
    let body = react::request(&conversation(), &settings());
    validators::openai::accepts_plain(&body);
    let texts = |body: &Value| {
        let messages = body["messages"].as_array().unwrap().iter();
        let texts =
            messages.map(|message| format!("--- {}\n{}", message["role"], message["content"].as_str().unwrap()));
        texts.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(texts(&body));
    let zh = TurnRequest { language: Language::Zh, ..conversation() };
    insta::assert_snapshot!("the_request_to_a_text_model_in_chinese", texts(&react::request(&zh, &settings())));
    assert_eq!(body["stop"], json!(["Observation:"]));
}

fn profile(name: &str) -> Value {
    openai::request(&conversation(), &Settings { profile: Profile::named(name).unwrap(), ..Settings::new("big") })
}

#[test]
fn each_profile_follows_its_rules() {
    for (name, rules) in [
        ("qwen", &[Rule::ObjectArguments, Rule::NoNull][..]),
        ("glm", &[Rule::ObjectArguments, Rule::NoNull]),
        ("gemma", &[Rule::OneCall, Rule::NoSystem, Rule::NoNull]),
        ("mistral", &[Rule::NineSigns, Rule::NoUserAfterTool, Rule::NoNull]),
        ("deepseek", &[Rule::NoNull]),
    ] {
        validators::openai::accepts(&profile(name), rules);
    }
    insta::assert_json_snapshot!("gemma", profile("gemma")["messages"]);
    insta::assert_json_snapshot!("mistral", profile("mistral")["messages"]);
}

#[test]
fn a_turn_without_tools_still_fits_its_history() {
    let last = TurnRequest { tools: Vec::new(), ..conversation() };
    let body = anthropic::request(&last, &settings());
    validators::anthropic::accepts(&body);
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 3);
    let body = openai::request(&last, &settings());
    validators::openai::accepts(&body, &[]);
    let text = react::request(&last, &settings())["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("no tools any more") && !text.contains("Action:"), "{text}");
}

#[test]
fn thinking_and_a_temperature_exclude_each_other() {
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}).as_object().unwrap().clone();
    let body = anthropic::request(&conversation(), &Settings { extra: thinking, ..settings() });
    assert!(body.get("temperature").is_none() && body["thinking"]["budget_tokens"] == 1024);
    let plain = anthropic::request(&conversation(), &settings());
    assert_eq!(plain["temperature"], 1.0);
}

#[test]
fn data_of_a_provider_is_sent_back_only_to_it() {
    let signed = json!({"google": {"thought_signature": "s"}});
    let mut request = conversation();
    request.messages[2].provider =
        Some(json!({"kind": "openai", "calls": [signed, null], "reasoning_details": [{"text": "hm"}]}));
    let body = openai::request(&request, &settings());
    assert_eq!(body["messages"][2]["tool_calls"][0]["extra_content"], signed);
    assert_eq!(body["messages"][2]["reasoning_details"], json!([{"text": "hm"}]));
    assert!(!anthropic::request(&request, &settings()).to_string().contains("signature"));
    assert!(!openai::request(&conversation(), &settings()).to_string().contains("\"sig\""));
    let reasoning = Profile { reasoning: true, ..Profile::default() };
    let body = openai::request(&conversation(), &Settings { profile: reasoning, ..settings() });
    assert_eq!(body["messages"][2]["reasoning_content"], "I look at both.");
}
