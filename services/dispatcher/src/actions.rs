//! What users do: a row is written before anything is changed, and completed afterwards.

use redial_engine::{accept::check_texts, call::check_create_redrive};
use redial_proto::{
    AcceptTool, AcceptToolReply, ApiError, CallId, Caller, CancelRedrive, CancelReply, CancelRequest, Code,
    CreateRedrive, DeleteWebhook, DeletedWebhook, ForgetTool, ForgetToolReply, RedriveReply, RedriveRequest,
    RedriveView, RotateWebhook, TaskCancel, TaskCancelReply, TestWebhook, TestedWebhook, TokenRevoke, TokenRevokeReply,
    WebhookSecret,
    limits::{MAX_PAYLOAD, shorten},
    subjects::Verb,
    tool::check_name,
};
use redial_store::{NewAction, audit::json_search::Condition};

use crate::{asked::Asked, context::Context, error::store_failed};

/// One in so many actions deletes the oldest of its user and verb. Chance decides, so that nobody can arrange that it is never
/// an action of one's own.
const TRIMS: u32 = 100;

/// A request that changes something.
pub(crate) trait Action {
    type Reply;

    /// The most bytes of such a request. Most name what they are about, and nothing else.
    const MOST_BYTES: usize = 64 * 1024;

    fn targets(&self) -> Vec<String>;

    /// Refuses what is no request of this kind at all, and so no action.
    fn check(&self, _: &Asked) -> impl Future<Output = Result<(), ApiError>> + Send {
        async { Ok(()) }
    }
}

/// Requests that are about one thing, which they name.
macro_rules! about {
    ($($request:ident => $reply:ident, $target:ident;)*) => {$(
        impl Action for $request {
            type Reply = $reply;

            fn targets(&self) -> Vec<String> {
                vec![self.$target.to_string()]
            }
        }
    )*};
}

about! {
    CancelRequest => CancelReply, call;
    CancelRedrive => RedriveView, redrive;
    TestWebhook => TestedWebhook, webhook;
    RotateWebhook => WebhookSecret, webhook;
    DeleteWebhook => DeletedWebhook, webhook;
    TokenRevoke => TokenRevokeReply, id;
}

/// What became of an action.
pub(crate) struct Done<R> {
    pub(crate) reply: R,
    /// How many calls, tasks or tools were changed.
    pub(crate) changed: u64,
}

/// Runs an action between the two writes to its row. Without the first one nothing is done.
pub(crate) async fn recorded<R>(
    context: &Context,
    caller: &Caller,
    verb: Verb,
    targets: &[String],
    action: impl Future<Output = Result<Done<R>, ApiError>>,
) -> Result<R, ApiError> {
    let new = NewAction { caller, door: caller.door.as_str(), verb: verb.name(), targets };
    let id = context.store.begin_action(&new).await.map_err(|error| store_failed(&error))?;
    let done = action.await;
    let (result, changed) = match &done {
        Ok(done) => ("done", done.changed),
        Err(error) => (error.code.as_str(), 0),
    };
    if let Err(error) = context.store.end_action(id, result, Some(changed)).await {
        tracing::warn!(%error, action = id, "Failed to record how an action ended; its row has no result");
    }
    trim_now_and_then(context, caller, verb).await;
    done.map(|done| done.reply)
}

/// Deletes a user's oldest actions now and then, so that their number stays bounded.
pub(crate) async fn trim_now_and_then(context: &Context, caller: &Caller, verb: Verb) {
    if !rand::random_ratio(1, TRIMS) {
        return;
    }
    if let Err(error) = context.store.trim_actions(caller, verb.name()).await {
        tracing::warn!(%error, "Failed to delete the oldest actions of a user");
    }
}

impl Action for RedriveRequest {
    type Reply = RedriveReply;

    /// It may have arguments.
    const MOST_BYTES: usize = MAX_PAYLOAD + 64 * 1024;

    fn targets(&self) -> Vec<String> {
        self.calls.iter().map(ToString::to_string).collect()
    }
}

impl Action for TaskCancel {
    type Reply = TaskCancelReply;

    fn targets(&self) -> Vec<String> {
        vec![self.task.to_string()]
    }

    /// Refuses the id of a call: clients with only an id ask for a task first, and that is no action.
    async fn check(&self, asked: &Asked) -> Result<(), ApiError> {
        let id = self.task;
        if !asked.store().has_call(CallId(id.0)).await.map_err(|error| store_failed(&error))? {
            return Ok(());
        }
        let message = format!("task: {id} is a call; allowed: the id of a task (calls.cancel stops a call)");
        Err(ApiError::new(Code::InvalidValue, message))
    }
}

impl Action for CreateRedrive {
    type Reply = RedriveView;

    fn targets(&self) -> Vec<String> {
        vec![self.redrive.to_string()]
    }

    async fn check(&self, _: &Asked) -> Result<(), ApiError> {
        check_create_redrive(self)?;
        for (name, conditions) in [("filter.argument", &self.filter.argument), ("filter.output", &self.filter.output)] {
            for condition in conditions {
                let wrong = |what| ApiError::new(Code::InvalidValue, format!("{name} {condition:?}: {what}"));
                condition.parse::<Condition>().map_err(wrong)?;
            }
        }
        Ok(())
    }
}

impl Action for ForgetTool {
    type Reply = ForgetToolReply;

    fn targets(&self) -> Vec<String> {
        vec![shorten(&self.tool, 200)]
    }

    async fn check(&self, _: &Asked) -> Result<(), ApiError> {
        check_name("tool name", &self.tool).map_err(|what| ApiError::new(Code::InvalidValue, what))
    }
}

impl Action for AcceptTool {
    type Reply = AcceptToolReply;

    fn targets(&self) -> Vec<String> {
        vec![shorten(&self.tool, 200)]
    }

    async fn check(&self, _: &Asked) -> Result<(), ApiError> {
        check_name("tool name", &self.tool).map_err(|what| ApiError::new(Code::InvalidValue, what))?;
        check_texts(&[("fingerprint", Some(&self.fingerprint))])
    }
}
