//! Asks the dispatchers for a task, and remembers whether it may be on record although none confirmed it.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use redial_proto::{
    Caller, Code, TaskResult, TaskSubmission,
    subjects::{self, Verb},
};
use redial_queue::{Origin, QueueError};
use uuid::Uuid;

use super::committed;
use crate::{gateway::Shared, problem::Problem};

const ANSWER: Duration = Duration::from_secs(20);
/// When a request that got no answer is sent again.
const AGAIN: Duration = Duration::from_millis(200);

pub(crate) struct Refusal {
    problem: Problem,
    /// A task may be on record, and the same request would make another one.
    must_not_repeat: bool,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, must_not_repeat: false }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.problem.into_response();
        if self.must_not_repeat {
            committed(response.headers_mut());
        }
        response
    }
}

/// Submits a task, twice if no dispatcher answered. It has a key for that; the gateway's own, if its client chose none, is new
/// with each request of the client.
pub(crate) async fn submit(
    gateway: &Shared,
    caller: &Caller,
    mut submission: TaskSubmission,
    traceparent: Option<&str>,
) -> Result<TaskResult, Refusal> {
    let has_key = submission.key.is_some();
    submission.key.get_or_insert_with(|| format!("openai-{}", Uuid::now_v7()));
    let subject = subjects::api(caller.door, &caller.tenant, &caller.user, caller.role, Verb::TaskSubmit);
    let origin = Origin { traceparent, token: caller.token.as_ref() };
    let ask = || gateway.queue.request_from(&subject, &submission, ANSWER, origin);
    let mut may_be_committed = false;
    let error = match ask().await {
        Err(error) if error.is_retryable() => {
            may_be_committed |= may_have_arrived(&error);
            tokio::time::sleep(AGAIN).await;
            match ask().await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            }
        }
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    may_be_committed |= may_have_arrived(&error);
    Err(Refusal { problem: error.into(), must_not_repeat: may_be_committed && !has_key })
}

/// Says whether a dispatcher may have carried out a request that failed so.
const fn may_have_arrived(error: &QueueError) -> bool {
    match error {
        QueueError::Api(error) => matches!(error.code, Code::Unavailable | Code::Internal),
        QueueError::Timeout { .. }
        | QueueError::NoAnswersAllowed { .. }
        | QueueError::Decode { .. }
        | QueueError::Nats { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::ApiError;

    use super::*;

    #[test]
    fn only_what_was_sent_may_be_on_record() {
        let api = |code| QueueError::Api(ApiError::new(code, "x"));
        let late = QueueError::Timeout { what: "x".to_owned(), after: ANSWER };
        for error in [late, api(Code::Unavailable)] {
            assert!(may_have_arrived(&error), "{error}");
        }
        let nobody = QueueError::NoResponders { subject: "x".to_owned() };
        for error in [nobody, QueueError::Disconnected, api(Code::RateLimited), api(Code::InvalidValue)] {
            assert!(!may_have_arrived(&error), "{error}");
        }
    }

    #[test]
    fn a_client_is_told_not_to_repeat_what_may_be_on_record() {
        let told = |must_not_repeat| {
            let problem = Problem::new(Code::Unavailable, "x");
            Refusal { problem, must_not_repeat }.into_response().headers().get("x-should-retry").cloned()
        };
        assert_eq!(told(true).unwrap(), "false");
        assert_eq!(told(false), None);
    }
}
