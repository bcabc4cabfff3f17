//! What people do: a row is written before anything is changed, and completed afterwards.

use redial_proto::{
    AcceptTool, AcceptToolReply, ApiError, Caller, CancelReply, CancelRequest, ForgetTool, ForgetToolReply,
    RedriveReply, RedriveRequest, SubmitStatus, TaskCancel, TaskCancelReply, subjects::Verb,
};
use redial_store::NewAction;

use crate::{context::Context, error::store_failed};

/// A request that changes something.
pub(crate) trait Action {
    /// Its reply.
    type Reply: Changed;

    /// What it is about.
    fn targets(&self) -> Vec<String>;
}

/// The reply to such a request.
pub(crate) trait Changed {
    /// How many were changed, if the reply tells.
    fn changed(&self) -> Option<u64>;
}

/// Runs an action between the two writes to its row. Without the first one nothing is done.
pub(crate) async fn recorded<R: Changed>(
    context: &Context,
    caller: &Caller,
    verb: Verb,
    targets: &[String],
    action: impl Future<Output = Result<R, ApiError>>,
) -> Result<R, ApiError> {
    let new = NewAction { caller, door: "nats", verb: verb.name(), targets };
    let id = context.store.begin_action(&new).await.map_err(|error| store_failed(&error))?;
    let done = action.await;
    let (result, changed) = match &done {
        Ok(reply) => ("done", reply.changed()),
        Err(error) => (error.code.as_str(), Some(0)),
    };
    if let Err(error) = context.store.end_action(id, result, changed).await {
        tracing::warn!(%error, action = id, "Failed to record how an action ended; its row has no result");
    }
    done
}

impl Action for CancelRequest {
    type Reply = CancelReply;

    fn targets(&self) -> Vec<String> {
        vec![self.call.to_string()]
    }
}

impl Changed for CancelReply {
    fn changed(&self) -> Option<u64> {
        None
    }
}

impl Action for RedriveRequest {
    type Reply = RedriveReply;

    fn targets(&self) -> Vec<String> {
        self.calls.iter().map(ToString::to_string).collect()
    }
}

impl Changed for RedriveReply {
    fn changed(&self) -> Option<u64> {
        Some(self.results.iter().filter(|result| result.status == SubmitStatus::Accepted).count() as u64)
    }
}

impl Action for TaskCancel {
    type Reply = TaskCancelReply;

    fn targets(&self) -> Vec<String> {
        vec![self.task.to_string()]
    }
}

impl Changed for TaskCancelReply {
    fn changed(&self) -> Option<u64> {
        None
    }
}

impl Action for ForgetTool {
    type Reply = ForgetToolReply;

    fn targets(&self) -> Vec<String> {
        vec![redial_proto::limits::shorten(&self.tool, 200)]
    }
}

impl Changed for ForgetToolReply {
    fn changed(&self) -> Option<u64> {
        Some(1)
    }
}

impl Action for AcceptTool {
    type Reply = AcceptToolReply;

    fn targets(&self) -> Vec<String> {
        vec![redial_proto::limits::shorten(&self.tool, 200)]
    }
}

impl Changed for AcceptToolReply {
    fn changed(&self) -> Option<u64> {
        None
    }
}
