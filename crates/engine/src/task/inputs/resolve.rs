//! The arguments' pipeline over each call of a model's reply.
//!
//! A reply is resolved against the tools that its model was *offered*, not against those that are known by now: the
//! verdict is the same whenever it is reached, also when a recorded task is replayed.

use std::{collections::HashMap, mem, sync::Arc};

use redial_arguments::{Repairs, Schema, Steps, tool_name_in};
use redial_proto::{ErrorClass, Failure, Finish, Language, Repair, ReplyCall, ToolOffer, TurnReply};
use serde::Deserialize;
use uuid::Uuid;

use super::{conversation::Conversation, cut_off};
use crate::{
    refused::Refused,
    task::{
        event::{Proposed, Reply, Verdict},
        step::failed,
    },
    tools::{RegisteredTool, Tools},
    view,
};

/// Calls that a model may ask for at once. A model that asks for more repeats itself without end.
const MAX_CALLS: usize = 128;

/// What the model of a reply was shown.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) offers: &'a [ToolOffer],
    pub(crate) conversation: &'a Conversation,
    /// Longest tool result, in bytes.
    pub(crate) result_bytes: u32,
    /// Language of the texts for it.
    pub(crate) language: Language,
}

/// Runs a check of arguments that may take long.
pub type Aside = fn(&mut dyn FnMut());

pub(crate) struct Resolver<'a> {
    /// The tools that are known now; most offers are of one of them, whose schema is compiled already.
    tools: &'a Tools,
    /// Schemas of offers that have changed since, by version.
    others: HashMap<String, Result<Arc<Schema>, String>>,
    /// Results that must be read before the reply can be resolved.
    missing: Vec<String>,
    /// What only a bug of Redial explains.
    bugs: Vec<String>,
    /// Where checks run that may take long.
    aside: Aside,
    /// Those that the calls of the present reply may still take.
    steps: Steps,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(tools: &'a Tools) -> Self {
        Self {
            tools,
            others: HashMap::new(),
            missing: Vec::new(),
            bugs: Vec::new(),
            aside: |check| check(),
            steps: Steps::default(),
        }
    }

    pub(crate) fn with_aside(self, aside: Aside) -> Self {
        Self { aside, ..self }
    }

    /// Resolves a model's reply, each call of it with its verdict. The error names results of earlier calls that have
    /// to be read first.
    pub(crate) fn reply(&mut self, reply: TurnReply, shown: Shown<'_>) -> Result<Reply, Vec<String>> {
        let (mut calls, mut problem) = (reply.calls, reply.problem);
        if calls.len() > MAX_CALLS {
            problem = Some(format!("{} calls were asked for at once; allowed: {MAX_CALLS}", calls.len()));
            calls.clear();
        }
        // All calls of a reply together take at most as many steps as a single one may.
        self.steps = Steps::default();
        let calls = calls.into_iter().map(|call| {
            let verdict = self.verdict(&call, shown);
            Proposed { name: call.name, arguments: call.arguments, verdict }
        });
        let mut calls: Vec<Proposed> = calls.collect();
        if reply.finish == Finish::Length {
            cut_off::refuse_last(&mut calls, reply.call_cut_off, shown.language);
        }
        if !self.missing.is_empty() {
            self.bugs.clear();
            return Err(mem::take(&mut self.missing));
        }
        Ok(Reply {
            calls,
            text: reply.text,
            thought: reply.thought,
            finish: reply.finish,
            problem,
            usage: reply.usage.counted(),
            provider: reply.provider,
        })
    }

    /// Takes what went wrong since the last time that only a bug of Redial explains; for the log.
    pub(crate) fn take_bugs(&mut self) -> Vec<String> {
        mem::take(&mut self.bugs)
    }

    fn verdict(&mut self, call: &ReplyCall, shown: Shown<'_>) -> Verdict {
        let offered = shown.offers.iter().map(|offer| offer.name.as_str());
        let (name, renamed) = match tool_name_in(&call.name, offered, shown.language) {
            Ok(found) => found,
            Err(refusal) => return refused(None, refusal.into()),
        };
        match shown.offers.iter().find(|offer| offer.name == name) {
            Some(offer) => {
                self.run(call, renamed, offer, shown).unwrap_or_else(|refusal| refused(Some(offer), refusal))
            }
            None => refused(None, self.internal("the offer is not on record").into()),
        }
    }

    fn run(
        &mut self,
        call: &ReplyCall,
        renamed: Option<Repair>,
        offer: &ToolOffer,
        shown: Shown<'_>,
    ) -> Result<Verdict, Refused> {
        let tool = offer.name.clone();
        let schema = self.schema(offer).map_err(|error| self.internal(&error))?;
        let repairs = if offer.repairs { Repairs::On } else { Repairs::Off };
        let check = || schema.resolve_within(&call.arguments, repairs, shown.language, &self.steps);
        let resolved = if schema.is_cheap(call.arguments.len()) { check() } else { on(self.aside, check) }?;
        let arguments = resolved.arguments.into_owned();
        if tool == view::READ_RESULT {
            return Ok(Verdict::Answered { output: self.read_result(&arguments, shown)?, tool });
        }
        Ok(Verdict::Run {
            tool,
            arguments,
            repairs: renamed.into_iter().chain(resolved.repairs).collect(),
            undeclared: resolved.undeclared,
            version: offer.version.clone(),
            polling: offer.polling,
            sequential: offer.sequential,
        })
    }

    /// Returns the schema of an offer, compiled once.
    fn schema(&mut self, offer: &ToolOffer) -> Result<Arc<Schema>, String> {
        let known = self.tools.get(&offer.name).filter(|tool| is_version(tool, offer));
        if let Some(tool) = known {
            return Ok(tool.schema.clone());
        }
        let compile = || match Schema::compile(&offer.parameters) {
            Ok(schema) => Ok(Arc::new(schema)),
            Err(error) => Err(error.to_string()),
        };
        let version = format!("{} {}", offer.name, offer.version);
        self.others.entry(version).or_insert_with(compile).clone()
    }

    /// Answers a call of the built-in tool.
    fn read_result(&mut self, arguments: &str, shown: Shown<'_>) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Asked {
            call_id: String,
            offset: u64,
        }
        let wrong = |message| failed(ErrorClass::InvalidArguments, message);
        let asked: Asked = serde_json::from_str(arguments).map_err(|error| wrong(error.to_string()))?;
        let Ok(result) = shown.conversation.result(&asked.call_id) else {
            // A reply may read several parts of one result.
            if !self.missing.contains(&asked.call_id) {
                self.missing.push(asked.call_id);
            }
            return Ok(String::new());
        };
        let limit = usize::try_from(shown.result_bytes).unwrap_or(usize::MAX);
        view::read_result(&asked.call_id, result, asked.offset, limit).map_err(wrong)
    }

    fn internal(&mut self, what: &str) -> Failure {
        self.bugs.push(format!("a call of a model cannot be resolved: {what}"));
        failed(ErrorClass::Internal, format!("Redial failed: {what}"))
    }
}

/// Runs a check aside.
fn on<T>(aside: Aside, check: impl Fn() -> T) -> T {
    let mut done = None;
    aside(&mut || done = Some(check()));
    done.unwrap_or_else(check)
}

fn refused(offer: Option<&ToolOffer>, Refused { failure, help }: Refused) -> Verdict {
    let (tool, version) = offer.map(|offer| (offer.name.clone(), offer.version.clone())).unzip();
    Verdict::Refused { tool, version: version.unwrap_or_default(), failure, help }
}

fn is_version(tool: &RegisteredTool, offer: &ToolOffer) -> bool {
    Uuid::try_parse(&offer.version) == Ok(tool.version)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use redial_proto::{RepairKind, ToolSpec};
    use serde_json::json;

    use super::*;

    fn weather() -> RegisteredTool {
        let schema = json!({
            "type": "object",
            "properties": {"location": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["location"],
        });
        RegisteredTool::new(ToolSpec { parameters: schema, ..ToolSpec::named("get_weather") }).unwrap()
    }

    fn offer(tool: &RegisteredTool) -> ToolOffer {
        ToolOffer {
            name: tool.spec.name.clone(),
            description: String::new(),
            parameters: tool.spec.parameters.clone(),
            version: tool.version.simple().to_string(),
            polling: true,
            sequential: true,
            repairs: true,
        }
    }

    fn call(name: &str, arguments: &str) -> ReplyCall {
        ReplyCall { name: name.to_owned(), arguments: arguments.to_owned() }
    }

    fn shown<'a>(offers: &'a [ToolOffer], conversation: &'a Conversation) -> Shown<'a> {
        Shown { offers, conversation, result_bytes: 300, language: Language::En }
    }

    fn resolve(name: &str, arguments: &str, offers: &[ToolOffer], tools: &Tools) -> Verdict {
        let reply = TurnReply { calls: vec![call(name, arguments)], ..TurnReply::default() };
        let conversation = Conversation::default();
        Resolver::new(tools).reply(reply, shown(offers, &conversation)).unwrap().calls.remove(0).verdict
    }

    fn failure_of(verdict: Verdict) -> (Option<String>, Failure) {
        match verdict {
            Verdict::Refused { tool, failure, .. } => (tool, failure),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_damaged_call_runs_with_its_repairs_on_record() {
        let tool = weather();
        let offers = [offer(&tool)];
        let verdict = resolve("Get_Weather", r#"{"Location": "Paris", "days": "2",}"#, &offers, &Tools::new());
        let Verdict::Run { tool: name, arguments, repairs, undeclared, version, polling, sequential } = verdict else {
            panic!("{verdict:?}")
        };
        assert!(undeclared.is_empty(), "{undeclared:?}");
        assert_eq!((name.as_str(), arguments.as_str()), ("get_weather", r#"{"location": "Paris", "days": 2}"#));
        assert_eq!((version.parse(), polling, sequential), (Ok(tool.version), true, true));
        let kinds: Vec<RepairKind> = repairs.iter().map(|repair| repair.kind).collect();
        assert_eq!(
            kinds,
            [RepairKind::ToolName, RepairKind::TrailingComma, RepairKind::KeyName, RepairKind::Type],
            "the name first"
        );
    }

    #[test]
    fn what_cannot_run_says_why() {
        let offers = [offer(&weather())];
        let refused = |name: &str, arguments: &str| failure_of(resolve(name, arguments, &offers, &Tools::new()));
        let (tool, failure) = refused("get_wether", "{}");
        assert_eq!((tool, failure.class), (None, ErrorClass::UnknownTool));
        assert!(failure.message.contains("did you mean \"get_weather\"?"), "{}", failure.message);
        let (tool, failure) = refused("get_weather", r#"{"days": "two"}"#);
        assert_eq!((tool.as_deref(), failure.class), (Some("get_weather"), ErrorClass::InvalidArguments));
        assert_eq!(failure.details.len(), 2, "every broken rule at once: {:?}", failure.details);
        let (_, failure) = refused("get_weather", r#"{"location":"Paris","days":2"#);
        assert_eq!(failure.class, ErrorClass::MalformedArguments);
        let unrepaired = [ToolOffer { repairs: false, ..offer(&weather()) }];
        let (_, failure) = failure_of(resolve("get_weather", r#"{"location": "Paris",}"#, &unrepaired, &Tools::new()));
        assert_eq!(failure.class, ErrorClass::MalformedArguments);
        let (_, failure) = refused("get_weather", &"[".repeat(redial_proto::limits::MAX_PAYLOAD + 1));
        assert!(failure.message.contains("1 too many; at most 16777216 are allowed"), "{}", failure.message);
    }

    #[test]
    fn the_schema_is_the_one_that_was_offered() {
        let (then, now) = (weather(), RegisteredTool::new(ToolSpec::named("get_weather")).unwrap());
        let tools = Tools::from([("get_weather".to_owned(), Arc::new(now))]);
        let (_, failure) = failure_of(resolve("get_weather", "{}", &[offer(&then)], &tools));
        assert_eq!(failure.class, ErrorClass::InvalidArguments);
        let tools = Tools::from([("get_weather".to_owned(), Arc::new(weather()))]);
        let unversioned = ToolOffer { version: String::new(), parameters: json!({"type": "object"}), ..offer(&then) };
        assert!(matches!(resolve("get_weather", "{}", &[unversioned], &tools), Verdict::Run { .. }));
    }

    #[test]
    fn the_built_in_tool_is_answered_at_once_or_asks_for_a_result_that_was_not_read_yet() {
        let offers = [view::read_result_offer()];
        let read = |offset: u32| call(view::READ_RESULT, &format!(r#"{{"call_id": "c1_1", "offset": {offset}}}"#));
        let reply = TurnReply { calls: vec![read(0), read(1)], ..TurnReply::default() };
        let mut conversation = Conversation::default();
        let tools = Tools::new();
        let mut resolver = Resolver::new(&tools);
        let mut resolve = |conversation: &Conversation| resolver.reply(reply.clone(), shown(&offers, conversation));
        let missing = resolve(&conversation).unwrap_err();
        assert_eq!(missing, ["c1_1"], "one result is read once, however many parts of it are asked for");
        conversation.add_results(missing, HashMap::from([("c1_1".to_owned(), "12".to_owned())]));
        for call in resolve(&conversation).unwrap().calls {
            let Verdict::Answered { tool, output } = call.verdict else { panic!("{call:?}") };
            assert!(tool == view::READ_RESULT && output.contains(r#""total_bytes":2"#), "{output}");
        }
        conversation.add_results(vec!["c1_1".to_owned()], HashMap::new());
        let (_, failure) = failure_of(resolve(&conversation).unwrap().calls.remove(0).verdict);
        assert!(failure.message.contains("no result of a call"), "{}", failure.message);
    }

    #[test]
    fn arguments_that_take_long_to_check_are_checked_aside() {
        static ASIDE: AtomicU32 = AtomicU32::new(0);
        let one = json!({"properties": {"a": {"$dynamicRef": "#here"}}});
        let schema = json!({"$dynamicAnchor": "here", "allOf": [one, one]});
        let tool = RegisteredTool::new(ToolSpec { parameters: schema, ..ToolSpec::named("nest") }).unwrap();
        let deep = (0..50).fold(json!({}), |inner, _| json!({"a": inner})).to_string();
        let calls = [deep.as_str(), "{}"].map(|arguments| call("nest", arguments));
        let reply = TurnReply { calls: calls.into(), ..TurnReply::default() };
        let (tools, offers, conversation) = (Tools::new(), [offer(&tool)], Conversation::default());
        let aside: Aside = |check| {
            ASIDE.fetch_add(1, Ordering::Relaxed);
            check();
        };
        let mut calls =
            Resolver::new(&tools).with_aside(aside).reply(reply, shown(&offers, &conversation)).unwrap().calls;
        assert_eq!(ASIDE.load(Ordering::Relaxed), 2);
        assert!(matches!(calls.remove(1).verdict, Verdict::Run { .. }), "a small one runs");
        let (tool, failure) = failure_of(calls.remove(0).verdict);
        assert_eq!((tool.as_deref(), failure.class), (Some("nest"), ErrorClass::Configuration));
        assert!(failure.message.contains("4000000 steps"), "{}", failure.message);
    }

    #[test]
    fn too_many_calls_are_a_problem_of_form() {
        let reply = TurnReply { calls: vec![call("a", "{}"); MAX_CALLS + 1], ..TurnReply::default() };
        let (tools, conversation) = (Tools::new(), Conversation::default());
        let resolved = Resolver::new(&tools).reply(reply, shown(&[], &conversation)).unwrap();
        assert!(resolved.calls.is_empty());
        assert_eq!(resolved.problem.as_deref(), Some("129 calls were asked for at once; allowed: 128"));
    }
}
