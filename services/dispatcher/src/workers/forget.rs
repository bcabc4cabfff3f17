//! Removes from the registry a tool that no live worker has.

use redial_proto::{ApiError, Code, ForgetTool, ForgetToolReply, subjects};
use redial_store::Forgotten;
use tokio::time::Instant;

use crate::{
    actions::Done,
    asked::Asked,
    error::{store_failed, tool_not_registered},
    feed::look_at_workers,
};

pub(crate) async fn forget(asked: Asked, request: ForgetTool) -> Result<Done<ForgetToolReply>, ApiError> {
    let context = asked.of_operators()?;
    let tool = request.tool;
    if let Err(error) = look_at_workers(context, false, Instant::now()).await {
        tracing::warn!(%error, "Failed to look at the workers");
        return Err(ApiError::new(
            Code::Unavailable,
            "cannot tell at the moment whether a worker has the tool; try again",
        ));
    }
    let forgotten = if context.feeder.is_served(&tool) {
        Forgotten::Served
    } else {
        context.store.forget_tool(&tool).await.map_err(|error| store_failed(&error))?
    };
    let waiting = match forgotten {
        Forgotten::Done { waiting } => waiting,
        Forgotten::Served => {
            let message = format!(
                "a live worker has the tool {tool:?} and would register it again; stop the workers that have it, or remove \
                 it from their manifests, first (`redial workers` lists them; one that was killed counts as live until its \
                 lease ends)"
            );
            return Err(ApiError::new(Code::WrongState, message));
        }
        Forgotten::Unknown => return Err(tool_not_registered(&tool, &context.registry.tools())),
    };
    tracing::info!(tool, waiting, "Removed a tool from the registry");
    if let Err(error) = context.queue.publish(subjects::TOOLS_CHANGED, &()).await {
        tracing::debug!(%error, "Failed to notify other dispatchers of a removed tool; they read the registry now and then");
    }
    context.registry.refresh(&context.store).await.map_err(|error| store_failed(&error))?;
    Ok(Done { reply: ForgetToolReply { waiting }, changed: 1 })
}
