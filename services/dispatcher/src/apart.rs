//! Messages whose bodies travel apart, in pieces: puts them together, and takes them apart.

use redial_proto::{ApiError, Code, Payload, limits::MAX_BODY, subjects};
use redial_queue::Request;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::bytes::Bytes;

use crate::{context::Context, error::store_failed};

/// Whose pieces belong to the sender of a message. `None` if its subject names nobody.
pub(crate) fn owner(subject: &str) -> Option<String> {
    if let Some(caller) = subjects::caller(subject) {
        return Some(format!("user {}.{}", caller.tenant, caller.user));
    }
    let identity = subjects::worker_caller(subject).map(|worker| worker.identity);
    identity.or_else(|| subjects::results_identity(subject)).map(|identity| format!("worker {identity}"))
}

/// A body, and the right to its memory. Its pieces are dropped: whoever gets no answer sends all of it again.
pub(crate) async fn assembled(
    context: &Context,
    owner: &str,
    payload: Payload,
) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    let store = &context.store;
    let failed = |error| store_failed(&error);
    let missing = || {
        let message = format!("not all {} pieces of the message are there; send it again", payload.pieces);
        ApiError::new(Code::Unavailable, message)
    };
    let bytes = store.payload_bytes(owner, payload).await.map_err(failed)?.ok_or_else(missing)?;
    if bytes > MAX_BODY {
        let message = format!("the message has {bytes} bytes; allowed: {MAX_BODY}");
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let memory = context.bodies.memory(bytes).await.ok_or_else(missing)?;
    let body = store.payload(owner, payload).await.map_err(failed)?.ok_or_else(missing)?;
    if let Err(error) = store.drop_payload(owner, payload.payload).await {
        tracing::debug!(%error, "Failed to drop a body in pieces; it expires");
    }
    Ok((body.into(), memory))
}

/// Sends a reply, in pieces if it does not fit into one message.
pub(crate) async fn reply<R: Serialize>(context: &Context, request: &Request, reply: &R) {
    let Some(body) = request.reply_if_it_fits(reply).await else { return };
    let text = str::from_utf8(&body).ok().filter(|text| text.len() <= MAX_BODY && request.takes_payloads());
    let Some((text, owner)) = text.zip(owner(request.subject())) else {
        return request.reply_too_large(body.len()).await;
    };
    match context.store.put_payload(&owner, text).await {
        Ok(payload) => request.reply_apart(payload).await,
        Err(error) => request.reply_error(&store_failed(&error)).await,
    }
}
