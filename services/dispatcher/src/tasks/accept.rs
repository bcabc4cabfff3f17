//! Turns a task's submission into a task to write, under a new id, or into an error. No I/O.

use std::{collections::BTreeMap, time::Instant};

use redial_access::{Access, TenantPolicy};
use redial_engine::{accept::check_texts, fingerprint::fingerprint, tools::Tools};
use redial_proto::{
    AgentRef, AgentSpec, ApiError, Caller, Code, Language, TaskId, TaskSubmission, limits,
    turn::{model_name, tool_name},
};
use redial_records::NewTask;
use redial_reread::Current;
use serde_json::json;
use uuid::Uuid;

use super::functions::{check_functions, with_additions};
use crate::{
    agents::{Declared, check, closest},
    asked::check_inline,
    context::Context,
    policies,
};

#[derive(Default)]
pub(crate) struct Files {
    pub(crate) declared: Declared,
    pub(crate) access: Current<Access>,
}

impl Files {
    pub(crate) async fn of(context: &Context) -> Self {
        let now = Instant::now();
        Self { declared: context.agents.at(now).await, access: context.access.at(now).await }
    }
}

/// Turns a submission into a task to write, with the whole agent as it is now. An error means that nothing is written.
pub(crate) fn accept(
    submission: &TaskSubmission,
    caller: &Caller,
    files: &Files,
    tools: &Tools,
    traceparent: Option<String>,
) -> Result<NewTask, ApiError> {
    check_fields(submission)?;
    policies::check_user(&files.access, caller)?;
    check_inline(caller.role, matches!(submission.agent, AgentRef::Inline(_)))?;
    let content = submission.key.as_ref().map(|_| content_of(submission));
    let wrong = |what: String| ApiError::new(Code::InvalidAgent, format!("agent: {what}"));
    let policy = policies::of(&files.access, &caller.tenant)?;
    let bounded;
    let (agent, spec) = match &submission.agent {
        AgentRef::Name(name) => {
            policies::check_agent(policy, name)?;
            (Some(name.clone()), files.declared.agent(name, policy)?)
        }
        AgentRef::Inline(spec) => {
            check(spec).map_err(wrong)?;
            bounded = policies::within(policy, spec, tools)?;
            (None, bounded.as_ref().unwrap_or(spec))
        }
    };
    let in_agent = |what: String| match &agent {
        Some(name) => ApiError::new(Code::InvalidAgent, format!("agent {name:?}: {what}")),
        None => wrong(what),
    };
    let spec = &*with_additions(spec, submission).map_err(in_agent)?;
    check_models(spec, tools, policy)?;
    check_tools(spec, tools, policy).and_then(|()| check_functions(spec, tools)).map_err(in_agent)?;
    Ok(NewTask {
        id: TaskId::generate(),
        tenant: caller.tenant.to_string(),
        submitted_by: Some(caller.user.to_string()),
        conversation: submission.conversation.clone().unwrap_or_else(|| Uuid::now_v7().to_string()),
        key: submission.key.clone(),
        content,
        metadata: submission.metadata.clone(),
        model: spec.model.clone(),
        language: spec.language.unwrap_or_else(|| Language::of(&submission.input)),
        spec: serde_json::to_string(spec).map_err(|error| wrong(error.to_string()))?,
        input: submission.input.clone(),
        traceparent,
        agent,
        waits_for_erasure: false,
    })
}

fn check_fields(submission: &TaskSubmission) -> Result<(), ApiError> {
    check_texts(&[("key", submission.key.as_ref()), ("conversation", submission.conversation.as_ref())])?;
    let (input, most) = (&submission.input, limits::MAX_INPUT);
    if input.len() > most {
        return Err(ApiError::new(Code::TooLarge, format!("input takes {} bytes; allowed: {most}", input.len())));
    }
    if input.trim().is_empty() {
        let message = format!("input says nothing; allowed: 1 to {most} bytes, not only white space");
        return Err(ApiError::new(Code::InvalidValue, message));
    }
    check_metadata(&submission.metadata).map_err(|message| ApiError::new(Code::InvalidValue, message))
}

fn check_metadata(notes: &BTreeMap<String, String>) -> Result<(), String> {
    if notes.len() > limits::MAX_METADATA {
        return Err(format!("metadata holds {} entries; allowed: {}", notes.len(), limits::MAX_METADATA));
    }
    for (key, value) in notes {
        let (in_key, in_value) = (key.chars().count(), value.chars().count());
        let (shown, most) = (limits::shorten(key, 100), limits::MAX_METADATA_KEY);
        if !(1..=most).contains(&in_key) {
            return Err(format!("metadata has the key {shown:?} of {in_key} characters; allowed: 1 to {most}"));
        }
        let most = limits::MAX_METADATA_VALUE;
        if in_value > most {
            return Err(format!("metadata: the value of {shown:?} has {in_value} characters; allowed: at most {most}"));
        }
    }
    Ok(())
}

fn check_models(spec: &AgentSpec, tools: &Tools, policy: Option<&TenantPolicy>) -> Result<(), ApiError> {
    let unknown = |model: &&String| !tools.get(&tool_name(model)).is_some_and(|tool| tool.is_model());
    let models = [Some(&spec.model), spec.fallback_model.as_ref()];
    models
        .into_iter()
        .flatten()
        .find(unknown)
        .map_or(Ok(()), |model| Err(unknown_model(model, &policies::visible(policy, tools))))
}

/// Checks that the tools that the agent names are known. A pattern may match nothing yet.
fn check_tools(spec: &AgentSpec, tools: &Tools, policy: Option<&TenantPolicy>) -> Result<(), String> {
    for name in spec.tools.iter().filter(|pattern| !pattern.contains('*')) {
        match tools.get(name) {
            Some(tool) if tool.is_for_agents() => {}
            found => {
                return Err(not_offered(
                    name,
                    found.is_some_and(|tool| tool.is_model()),
                    &policies::visible(policy, tools),
                ));
            }
        }
    }
    Ok(())
}

fn unknown_model(model: &str, tools: &Tools) -> ApiError {
    let models = tools.values().filter(|tool| tool.is_model()).filter_map(|tool| model_name(&tool.spec.name));
    let mut models: Vec<&str> = models.collect();
    models.sort_unstable();
    let what = match closest(model, models.iter().copied()) {
        Some(names) => format!("did you mean {names}?"),
        None if models.is_empty() => "no model is known at all".to_owned(),
        None => "no known model has a similar name, `redial tools` lists them".to_owned(),
    };
    let remedy = "a worker reads its models.toml only when it starts: restart it, or `redial dev`, after a change";
    ApiError::new(Code::UnknownModel, format!("no worker serves a model {model:?}; {what} ({remedy})"))
}

fn not_offered(name: &str, is_model: bool, tools: &Tools) -> String {
    let shown = limits::shorten(name, 64);
    if is_model {
        return format!("tools: {shown:?} is a model, and no tool that it may use");
    }
    let known = tools.values().filter(|tool| tool.is_for_agents()).map(|tool| tool.spec.name.as_str());
    let what = match closest(name, known) {
        Some(names) => format!("did you mean {names}?"),
        None => "`redial tools` lists the known ones; a pattern with * may match nothing yet".to_owned(),
    };
    format!(
        "tools: no worker has registered a tool {shown:?}; {what} (a worker reads its tools.toml only when it starts: restart \
         it, or `redial dev`, after a change)"
    )
}

/// Returns what distinguishes a repeated submission from another one under the same key.
fn content_of(submission: &TaskSubmission) -> Uuid {
    let TaskSubmission { input, agent, conversation, functions, function_timeout_ms, instructions, metadata, .. } =
        submission;
    fingerprint(&json!([input, agent, conversation, functions, function_timeout_ms, instructions, metadata]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redial_proto::{Door, FunctionSpec, Tenant, ToolSpec, User, UserRole, turn};

    use super::*;
    use redial_engine::tools::RegisteredTool;

    fn tools() -> Tools {
        let named = |name: &str, pool: &str| ToolSpec { pool: pool.to_owned(), ..ToolSpec::named(name) };
        let specs =
            [named("get_weather", "default"), named("model-small", turn::POOL), named("model-large", turn::POOL)];
        specs.into_iter().map(|spec| (spec.name.clone(), Arc::new(RegisteredTool::new(spec).unwrap()))).collect()
    }

    fn task(agent: AgentSpec) -> TaskSubmission {
        TaskSubmission::new("How is the weather?", AgentRef::Inline(Box::new(agent)))
    }

    fn function(name: &str) -> FunctionSpec {
        FunctionSpec { name: name.to_owned(), description: String::new(), parameters: json!({"type": "object"}) }
    }

    fn caller(submission: &TaskSubmission) -> Caller {
        let role = match submission.agent {
            AgentRef::Inline(_) => UserRole::Inline,
            AgentRef::Name(_) => UserRole::Submit,
        };
        Caller { tenant: Tenant::default(), user: User::default(), role, door: Door::Nats, token: None }
    }

    fn try_accept(submission: &TaskSubmission) -> Result<NewTask, ApiError> {
        accept(submission, &caller(submission), &Files::default(), &tools(), None)
    }

    fn wrong(change: impl FnOnce(&mut TaskSubmission)) -> String {
        let mut submission = task(AgentSpec::new("small"));
        change(&mut submission);
        try_accept(&submission).unwrap_err().to_string()
    }

    fn wrong_agent(change: impl FnOnce(&mut AgentSpec)) -> String {
        let mut agent = AgentSpec::new("small");
        change(&mut agent);
        try_accept(&task(agent)).unwrap_err().to_string()
    }

    #[test]
    fn a_good_task_gets_a_conversation_a_tenant_and_a_language() {
        let agent = AgentSpec { tools: vec!["get_weather".into(), "nothing_*".into()], ..AgentSpec::new("small") };
        let accepted = try_accept(&task(agent.clone())).unwrap();
        assert_eq!((accepted.tenant.as_str(), accepted.language), ("default", Language::En));
        assert_eq!(accepted.conversation.parse::<Uuid>().unwrap().get_version_num(), 7);
        assert_eq!(serde_json::from_str::<AgentSpec>(&accepted.spec).unwrap(), agent);
        let chinese = TaskSubmission { input: "天气怎么样？".to_owned(), ..task(agent.clone()) };
        assert_eq!(try_accept(&chinese.clone()).unwrap().language, Language::Zh);
        let english = AgentSpec { language: Some(Language::En), ..agent };
        let fixed = TaskSubmission { agent: AgentRef::Inline(Box::new(english)), ..chinese };
        assert_eq!(try_accept(&fixed).unwrap().language, Language::En);
    }

    #[test]
    fn functions_and_instructions_are_pinned_with_the_agent() {
        let agent = AgentSpec { system: "Be brief.".into(), ..AgentSpec::new("small") };
        let submission = TaskSubmission {
            functions: vec![function("ask_user")],
            function_timeout_ms: Some(5_000),
            instructions: Some("Speak of money.".to_owned()),
            metadata: [("order".to_owned(), "17".to_owned())].into(),
            ..task(agent)
        };
        let accepted = try_accept(&submission).unwrap();
        let pinned: AgentSpec = serde_json::from_str(&accepted.spec).unwrap();
        assert_eq!(pinned.system, "Be brief.\n\nSpeak of money.");
        assert_eq!((pinned.functions, pinned.function_timeout_ms), (vec![function("ask_user")], Some(5_000)));
        assert_eq!(accepted.metadata["order"], "17");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let errors = [
            wrong(|t| t.input = " \n\u{3000}".into()),
            wrong(|t| t.input = "x".repeat(limits::MAX_INPUT + 1)),
            wrong(|t| t.key = Some(String::new())),
            wrong(|t| t.conversation = Some("x".repeat(201))),
            wrong(|t| t.agent = AgentRef::Name("weather".into())),
            wrong_agent(|a| a.model = "smal".into()),
            wrong_agent(|a| a.fallback_model = Some("enormous".into())),
            wrong_agent(|a| a.tools = vec!["get_wether".into()]),
            wrong_agent(|a| a.tools = vec!["model-small".into()]),
            wrong_agent(|a| a.tools = vec!["send_email".into()]),
            wrong_agent(|a| a.max_corrections = 1000),
            wrong_agent(|a| (a.tools, a.functions) = (vec!["get_*".into()], vec![function("get_weather")])),
            wrong(|t| t.functions = vec![function("ask_user"), function("ask_user")]),
            wrong(|t| t.functions = vec![function("model-x")]),
            wrong(|t| t.functions = vec![function("read_result")]),
            wrong(|t| {
                t.functions = vec![FunctionSpec { parameters: json!({"type": "nothing"}), ..function("ask_user") }];
            }),
            wrong(|t| t.function_timeout_ms = Some(10)),
            wrong(|t| t.instructions = Some("x".repeat(70_000))),
            wrong(|t| t.metadata = (0..17).map(|n| (n.to_string(), String::new())).collect()),
            wrong(|t| t.metadata = [("k".to_owned(), "x".repeat(513))].into()),
            wrong(|t| t.metadata = [("k".repeat(65), String::new())].into()),
        ];
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn the_same_key_means_the_same_task() {
        let keyed = |change: fn(&mut TaskSubmission)| {
            let mut submission = task(AgentSpec::new("small"));
            submission.key = Some("k".to_owned());
            change(&mut submission);
            try_accept(&submission).unwrap().content.unwrap()
        };
        let first = keyed(|_| {});
        assert_eq!(first, keyed(|_| {}));
        assert_ne!(first, keyed(|t| t.input.push('!')));
        assert_ne!(first, keyed(|t| t.functions = vec![function("ask_user")]));
        assert_ne!(first, keyed(|t| t.metadata = [("a".to_owned(), "b".to_owned())].into()));
        assert_ne!(first, keyed(|t| t.conversation = Some("c".into())));
        assert_ne!(first, keyed(|t| t.agent = AgentRef::Inline(Box::new(AgentSpec::new("large")))));
        assert_eq!(try_accept(&task(AgentSpec::new("small"))).unwrap().content, None);
    }
}
