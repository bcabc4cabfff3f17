//! Checks that every provider accepts the conversation that its models see.

use crate::validators::{
    self,
    openai::{Rule, faults_by},
};
use rand::{Rng, rngs::StdRng};
use redial_llm::{Arguments, Calls, EmptyContent, Ids, Profile, Settings, System, anthropic, openai, react};
use redial_proto::{Language, Message, Role, TaskId, ToolOffer, Trimmed, TurnRequest};
use serde_json::Value;

use super::record::valid;

/// Builds the request of each provider and checks it by that provider's rules.
pub(crate) fn check(
    messages: Vec<Message>,
    tools: Vec<ToolOffer>,
    language: Language,
    rng: &mut StdRng,
) -> Result<(), String> {
    valid(messages.iter()).map_err(|what| format!("the view: {what}"))?;
    let systems = messages.iter().skip(1).filter(|message| message.role == Role::System).count();
    if systems > 0 {
        return Err("the view: a system message does not stand first".to_owned());
    }
    let task = TaskId(uuid::Uuid::nil());
    let (max_tokens, temperature) = (None, rng.random_bool(0.2).then_some(1.5));
    let trimmed = Trimmed::default();
    let request = TurnRequest { task, turn: 1, messages, tools, language, max_tokens, temperature, trimmed };
    let settings = Settings::new("m");
    accepted("openai", &openai::request(&request, &settings), validators::openai::faults)?;
    accepted("anthropic", &anthropic::request(&request, &settings), validators::anthropic::faults)?;
    accepted("react", &react::request(&request, &settings), validators::react::faults)?;
    let name = Profile::NAMES[rng.random_range(0..Profile::NAMES.len())];
    let profile = Profile::named(name).expect("it is one of the names");
    let rules = rules(profile);
    accepted(name, &openai::request(&request, &Settings { profile, ..settings }), |body| faults_by(body, &rules))
}

fn accepted(provider: &str, body: &Value, faults: impl Fn(&Value) -> Vec<String>) -> Result<(), String> {
    let faults = faults(body);
    if faults.is_empty() { Ok(()) } else { Err(format!("{provider}: {faults:#?}\n{body:#}")) }
}

/// The rules of a profile.
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
