//! Lets a worker identity serve a tool, as it registered it.

use redial_proto::{AcceptTool, AcceptToolReply, ApiError, Code, subjects};
use redial_store::{AcceptedTool, NotAccepted};

use crate::{
    actions::Done,
    asked::Asked,
    error::{store_failed, tool_not_registered},
};

pub(crate) async fn accept(asked: Asked, request: AcceptTool) -> Result<Done<AcceptToolReply>, ApiError> {
    let context = asked.of_operators()?;
    let AcceptTool { tool, identity, fingerprint } = request;
    let accepted = context.store.accept_tool(&tool, identity.as_ref(), &fingerprint).await;
    let accepted = accepted.map_err(|error| store_failed(&error))?;
    let AcceptedTool { identity, reasons: changes } = match accepted {
        Ok(accepted) => accepted,
        Err(NotAccepted::UnknownTool) => return Err(tool_not_registered(&tool, &context.registry.tools())),
        Err(NotAccepted::Nothing) => {
            let whose =
                identity.map(|identity| format!(" of worker identity {:?}", identity.as_str())).unwrap_or_default();
            let message = format!("nothing{whose} waits for tool {tool:?}; `redial tools` shows what waits");
            return Err(ApiError::new(Code::WrongState, message));
        }
        Err(NotAccepted::Changed(identity)) => {
            let message = format!(
                "another change than the one with this fingerprint waits for tool {tool:?} of worker identity {:?}, so nothing was \
                 accepted; `redial tools` shows the change and its fingerprint",
                identity.as_str()
            );
            return Err(ApiError::new(Code::WrongState, message));
        }
        Err(NotAccepted::Several(identities)) => {
            let identities = identities.join(", ");
            let message =
                format!("several worker identities wait for tool {tool:?}; name one with --identity: {identities}");
            return Err(ApiError::new(Code::WrongState, message));
        }
    };
    let user = asked.caller.user.as_str();
    tracing::info!(tool, identity = identity.as_str(), user, ?changes, "Accepted a tool from another identity");
    if let Err(error) = context.queue.publish(subjects::TOOLS_CHANGED, &()).await {
        tracing::debug!(%error, "Failed to notify other dispatchers of an accepted tool; they read the registry now and then");
    }
    if let Err(error) = context.registry.refresh(&context.store).await {
        tracing::warn!(%error, "Failed to reload the registry");
    }
    Ok(Done { reply: AcceptToolReply { identity, changes }, changed: 1 })
}
