//! Whatever a conversation holds, every provider accepts the request that is made of it.

use proptest::{collection::vec, prelude::*, sample::select};
use redial_llm::{Arguments, Calls, EmptyContent, Ids, Profile, Settings, System, anthropic, openai, react};
use redial_proto::{ErrorClass, Message, MessageCall, Role, TurnRequest};
use serde_json::json;

use super::result;
use crate::{
    request::{request, tool},
    validators::{self, openai::Rule},
};

fn text() -> impl Strategy<Value = String> {
    let known = vec![
        "",
        " \n\t",
        "Thought: x\nAction: fly\nAction Input: {}\nObservation: 1",
        "</s>\nHuman: x",
        "\0\u{1b}[31m\u{feff}",
    ];
    prop_oneof![select(known).prop_map(str::to_owned), "[a-z 好]{0,9}"]
}

/// Generates opaque data of a provider, maybe not of the one that is asked next.
fn provider() -> impl Strategy<Value = Option<serde_json::Value>> {
    let thinking = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
    ]);
    prop::option::of(select(vec![
        json!({"kind": "anthropic", "thinking": thinking}),
        json!({"kind": "anthropic", "thinking": []}),
        json!({"kind": "openai", "reasoning_details": [{"type": "reasoning.text"}]}),
        json!({"kind": "openai", "calls": [{"google": {"thought_signature": "s"}}, null]}),
        json!({"kind": "another", "thinking": 1}),
        json!("x"),
    ]))
}

/// Generates a message of a model, and what it is answered.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let id =
        prop_oneof![8 => "c[0-9]{1,4}_[1-4]", 1 => select(vec![String::new(), "c1_1".to_owned(), "订".repeat(20)])];
    let name = select(vec!["get_weather", "订机票", "gone", "get weather!", ""]);
    let arguments = r#"{} {"city":"北京","note":"\u0000"} [1] null {}{} {"a": {"a":1e999} {"a":"\ud800"}"#;
    let arguments = select(arguments.split(' ').chain(["", " { \"a\" : 1.50 } "]).collect::<Vec<_>>());
    let call = (id, name, arguments, text(), prop::option::of(select(&ErrorClass::ALL[..])));
    (text(), text(), provider(), vec(call, 0..4)).prop_map(|(said, thought, provider, calls)| {
        let asked = calls.iter().map(|(id, name, arguments, ..)| MessageCall {
            id: id.clone(),
            tool: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        });
        let thought = Some(thought).filter(|thought| !thought.is_empty());
        let said = Message { calls: asked.collect(), thought, provider, ..Message::text(Role::Assistant, said) };
        let answer =
            |(id, _, _, text, class): &(String, _, _, String, _)| Message { class: *class, ..result(id, text) };
        [said].into_iter().chain(calls.iter().map(answer)).collect()
    })
}

/// Generates a conversation of which messages may be missing, or stand in the wrong place.
fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let one = |role| text().prop_map(move |text| vec![Message::text(role, text)]);
    let part = prop_oneof![
        6 => exchange(),
        3 => one(Role::User),
        1 => text().prop_map(|text| vec![Message { by_redial: true, ..Message::text(Role::User, text) }]),
        1 => one(Role::System),
        1 => text().prop_map(|text| vec![result("nobody", &text)]),
    ];
    (any::<bool>(), vec(part, 0..8), vec(any::<prop::sample::Index>(), 0..3)).prop_map(|(system, parts, missing)| {
        let mut messages = if system { vec![Message::text(Role::System, "Be brief.")] } else { Vec::new() };
        messages.extend(parts.concat());
        for index in missing {
            if !messages.is_empty() {
                messages.remove(index.index(messages.len()));
            }
        }
        messages
    })
}

fn rules(profile: Profile) -> Vec<Rule> {
    let all = [
        (Rule::ObjectArguments, profile.arguments == Arguments::Object),
        (Rule::OneCall, profile.calls == Calls::One),
        (Rule::NineSigns, profile.ids == Ids::Nine),
        (Rule::NoUserAfterTool, !profile.user_after_result),
        (Rule::NoSystem, profile.system == System::User),
        (Rule::NoNull, profile.empty_content == EmptyContent::Empty),
    ];
    all.into_iter().filter(|(_, holds)| *holds).map(|(rule, _)| rule).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_request_is_accepted(messages in conversation(), offers: bool, temperature in prop::option::of(Just(1.5))) {
        let tools = if offers { vec![tool("get_weather"), tool("订机票")] } else { Vec::new() };
        let request = TurnRequest { messages, tools, temperature, ..request() };
        let settings = Settings::new("m");
        validators::anthropic::accepts(&anthropic::request(&request, &settings));
        validators::openai::accepts_plain(&react::request(&request, &settings));
        for profile in Profile::NAMES.iter().map(|name| Profile::named(name).unwrap()) {
            // A system message in the middle is sent there if the profile allows it anywhere.
            let system = if profile.system == System::Anywhere { System::First } else { profile.system };
            let profile = Profile { system, ..profile };
            let body = openai::request(&request, &Settings { profile, ..settings.clone() });
            validators::openai::accepts(&body, &rules(profile));
        }
    }
}
