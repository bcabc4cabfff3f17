//! Submits a task for a question, in its conversation.

use std::collections::BTreeMap;

use redial_proto::{
    AgentRef, ApiError, Code, FunctionSpec, TaskId, TaskSubmission, UserRole, limits, subjects::TRACEPARENT,
};

use super::{
    answer::{check_answered, not_newest, pending},
    follow::{Segments, task_of},
    ids::{self, ResponseId},
    input::Input,
    submit::{Refusal, submit},
    wrong,
};
use crate::{extract::text, gateway::Shared, identity::Identity, problem::Problem};
use axum::http::{HeaderMap, StatusCode};

pub(crate) struct Question {
    pub(crate) agent: String,
    pub(crate) input: Input,
    pub(crate) instructions: Option<String>,
    pub(crate) functions: Vec<FunctionSpec>,
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) key: Option<String>,
    pub(crate) place: Place,
    pub(crate) param: &'static str,
}

pub(crate) enum Place {
    Conversation(String),
    /// Which must be its newest.
    After(ResponseId),
    /// The conversation of an earlier item, or a new one.
    Any,
}

/// Submits a question; returns its first response.
pub(crate) async fn begin(
    gateway: &Shared,
    who: &Identity,
    question: Question,
    headers: &HeaderMap,
) -> Result<ResponseId, Refusal> {
    if question.input.question().trim().is_empty() {
        let Question { param, .. } = question;
        return Err(
            wrong(param, format!("{param}: the user says nothing; allowed: a text of the user at the end")).into()
        );
    }
    check_answered(gateway, who, &question.input.answered, question.param).await?;
    let conversation = conversation(gateway, who, &question).await?;
    let caller = who.in_role(&[UserRole::Submit])?;
    let submission = submission(question, conversation);
    let result = submit(gateway, &caller, submission, text(headers, TRACEPARENT)).await?;
    let problem = match (result.task, result.error) {
        (Some(task), _) => return Ok(ResponseId { task, segment: 0 }),
        (None, Some(error)) if error.code == Code::UnknownAgent => wrong("model", error.message),
        (None, Some(error)) if error.code == Code::InvalidAgent => wrong("tools", error.message),
        (None, Some(error)) if error.code == Code::InvalidValue => {
            Problem::from(error).with_status(StatusCode::BAD_REQUEST)
        }
        (None, Some(error)) => error.into(),
        (None, None) => ApiError::new(Code::Internal, "a dispatcher gave no reason").into(),
    };
    Err(problem.into())
}

fn submission(question: Question, conversation: Option<String>) -> TaskSubmission {
    let input = if conversation.is_some() { question.input.question() } else { question.input.whole() };
    let instructions = [question.instructions, question.input.instructions];
    let instructions: Vec<String> = instructions.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    TaskSubmission {
        conversation,
        key: question.key,
        functions: question.functions,
        instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        metadata: question.notes,
        ..TaskSubmission::new(input, AgentRef::Name(question.agent))
    }
}

async fn conversation(gateway: &Shared, who: &Identity, question: &Question) -> Result<Option<String>, Problem> {
    let store = gateway.store.of(&who.tenant);
    let (conversation, before) = match &question.place {
        Place::Conversation(name) => {
            check_name(name)?;
            (name.clone(), None)
        }
        Place::After(before) => (task_of(gateway, who, *before).await?.conversation, Some(*before)),
        Place::Any => {
            let Some(task) = question.input.task else { return Ok(None) };
            let Some(task) = store.task(task).await? else { return Ok(None) };
            (task.conversation, None)
        }
    };
    if let Some(newest) = store.newest_task(&conversation).await?
        && let Some(problem) = cannot_follow(gateway, who, question.param, before, newest).await?
    {
        // Only now: an equal request may have been accepted since, and then it is the newest itself.
        let was_asked = match &question.key {
            Some(key) => store.task_with_key(key).await?.is_some(),
            None => false,
        };
        if !was_asked {
            return Err(problem);
        }
    }
    Ok(Some(conversation))
}

/// Says why a question may not follow the newest task of its conversation; `None` if it may.
async fn cannot_follow(
    gateway: &Shared,
    who: &Identity,
    param: &str,
    before: Option<ResponseId>,
    newest: TaskId,
) -> Result<Option<Problem>, Problem> {
    let functions = gateway.store.of(&who.tenant).functions_of(newest).await?;
    let segments = Segments::of(&functions);
    let last = ResponseId { task: newest, segment: segments.last() };
    if let Some(before) = before.filter(|before| *before != last) {
        return Ok(Some(not_newest(before, last)));
    }
    // A task that waits for its client would keep this one waiting.
    let waiting: Vec<String> = segments.waiting().map(|one| ids::of_call(one.call)).collect();
    Ok((!waiting.is_empty()).then(|| pending(param, &waiting)))
}

/// Refuses control characters before the database is asked: no text there holds U+0000.
fn check_name(name: &str) -> Result<(), Problem> {
    if (1..=limits::MAX_KEY).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let (shown, most) = (limits::shorten(name, 100), limits::MAX_KEY);
    let message = format!("conversation is {shown:?}; allowed: 1 to {most} bytes of UTF-8 without control characters");
    Err(wrong("conversation", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_conversation_has_is_told_what_is_allowed() {
        assert!(check_name("trip to Paris").is_ok());
        for name in ["", "a\0b", "a\nb", &"x".repeat(limits::MAX_KEY + 1)] {
            let problem = check_name(name).unwrap_err();
            assert!(problem.error.message.contains("allowed: 1 to "), "{}", problem.error.message);
        }
    }
}
