//! Says whether this dispatcher can do its work.

use redial_proto::{ApiError, Code, DispatcherHealth, subjects::Verb};
use redial_queue::QueueError;
use tokio::time::Instant;

use crate::{
    asked::caller,
    context::Context,
    error::store_failed,
    running::Running,
    serve::{self, Senders},
};

/// Answers every user, whatever the access file says of it: nothing is told but how the dispatcher is.
pub(crate) async fn start(running: &Running) -> Result<(), QueueError> {
    let verb = Verb::Health;
    serve::each(running, Senders::Users(verb), move |context, request| {
        let asked = caller(request, verb);
        async move {
            asked?;
            health(&context).await
        }
    })
    .await
}

async fn health(context: &Context) -> Result<DispatcherHealth, ApiError> {
    if !context.workers.is_connected() {
        return Err(ApiError::new(Code::Unavailable, "the connection to NATS on which workers are heard is lost"));
    }
    context.store.takes_writes().await.map_err(|error| store_failed(&error))?;
    Ok(DispatcherHealth { jobs_fail_since: context.publishing.fail_since(Instant::now()) })
}
