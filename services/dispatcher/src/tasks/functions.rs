//! What a submission adds to its agent: functions that the client serves, and instructions.

use std::borrow::Cow;

use redial_arguments::Schema;
use redial_engine::{tools::Tools, view::READ_RESULT};
use redial_proto::{AgentSpec, FunctionSpec, TaskSubmission};

use crate::{agents::check, aside::aside};

/// Returns the agent as it is pinned; an error says what is wrong with what was added, and what is allowed.
pub(super) fn with_additions<'a>(
    spec: &'a AgentSpec,
    submission: &TaskSubmission,
) -> Result<Cow<'a, AgentSpec>, String> {
    let adds = !submission.functions.is_empty()
        || submission.function_timeout_ms.is_some()
        || submission.instructions.is_some();
    if !adds {
        return Ok(Cow::Borrowed(spec));
    }
    let mut whole = spec.clone();
    whole.functions.extend(submission.functions.iter().cloned());
    whole.function_timeout_ms = submission.function_timeout_ms.or(whole.function_timeout_ms);
    if let Some(instructions) = &submission.instructions {
        let gap = if whole.system.is_empty() || instructions.is_empty() { "" } else { "\n\n" };
        whole.system = format!("{}{gap}{instructions}", whole.system);
    }
    check(&whole)?;
    Ok(Cow::Owned(whole))
}

/// Checks the functions of an agent as its model is offered them: no name means two things, and each schema compiles.
pub(super) fn check_functions(spec: &AgentSpec, tools: &Tools) -> Result<(), String> {
    if spec.functions.is_empty() {
        return Ok(());
    }
    spec.functions.iter().try_for_each(|function| check_free(function, spec, tools))?;
    aside(|| spec.functions.iter().try_for_each(check_schema))
}

fn check_free(function: &FunctionSpec, spec: &AgentSpec, tools: &Tools) -> Result<(), String> {
    let name = &function.name;
    let why = match () {
        () if name == READ_RESULT => "is the name of a built-in tool",
        () if spec.offers(name) && tools.get(name).is_some_and(|tool| !tool.is_model()) => {
            "is the name of a tool of the agent"
        }
        () => return Ok(()),
    };
    Err(format!("functions: {name:?} {why}; allowed: any other name"))
}

fn check_schema(function: &FunctionSpec) -> Result<(), String> {
    let compiled = Schema::compile(&function.parameters);
    compiled.map(drop).map_err(|error| format!("functions: {:?}: parameters: {error}", function.name))
}
