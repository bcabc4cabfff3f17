//! Messages whose bodies travel apart, in pieces: puts them together, and takes them apart.

use redial_proto::{
    ApiError, Caller, Code, Payload, WorkerIdentity,
    limits::{MAX_BODY, MAX_PIECES},
    subjects,
};
use redial_queue::Request;
use redial_shares::Share;
use redial_store::StoreError;
use serde::{Serialize, Serializer};
use tokio_util::bytes::Bytes;

use crate::{context::Context, error::store_failed};

/// Returns the owner of the pieces that the sender of a message refers to; `None` if its subject names nobody.
pub(crate) fn owner(subject: &str) -> Option<String> {
    if let Some(caller) = subjects::caller(subject) {
        return Some(of_user(&caller));
    }
    let identity = subjects::worker_caller(subject).map(|worker| worker.identity);
    identity.or_else(|| subjects::results_identity(subject)).map(|identity| of_worker(&identity))
}

pub(crate) fn of_user(caller: &Caller) -> String {
    format!("user {}.{}", caller.tenant, caller.user)
}

pub(crate) fn of_worker(identity: &WorkerIdentity) -> String {
    format!("worker {identity}")
}

/// Why a body could not be put together.
pub(crate) enum NotTogether {
    /// Pieces are not there, or not any more.
    Missing,
    /// Its size in bytes.
    TooLarge(usize),
    /// There was no place to wait for its memory.
    NoPlace(ApiError),
    Store(StoreError),
}

impl NotTogether {
    pub(crate) fn error(&self, payload: Payload) -> ApiError {
        match self {
            Self::Missing => {
                let message = format!("not all {} pieces of the message are there; send it again", payload.pieces);
                ApiError::new(Code::Unavailable, message)
            }
            Self::TooLarge(bytes) => {
                ApiError::new(Code::TooLarge, format!("the message has {bytes} bytes; allowed: {MAX_BODY}"))
            }
            Self::NoPlace(error) => error.clone(),
            Self::Store(error) => store_failed(error),
        }
    }
}

/// Puts a body together, and takes its share of the memory for bodies. Its pieces are left: see [`forget`].
pub(crate) async fn assembled(
    context: &Context,
    owner: &str,
    payload: Payload,
) -> Result<(Bytes, Option<Share>), NotTogether> {
    let store = &context.store;
    if payload.pieces > MAX_PIECES {
        return Err(NotTogether::Missing);
    }
    let bytes = store.payload_bytes(owner, payload).await.map_err(NotTogether::Store)?.ok_or(NotTogether::Missing)?;
    if bytes > MAX_BODY {
        return Err(NotTogether::TooLarge(bytes));
    }
    let memory = context.bodies.memory(owner, bytes).await.map_err(NotTogether::NoPlace)?;
    let body = store.payload(owner, payload).await.map_err(NotTogether::Store)?.ok_or(NotTogether::Missing)?;
    Ok((body.into(), memory))
}

/// Drops the pieces of a body that nobody needs any more.
pub(crate) async fn forget(context: &Context, owner: &str, payload: Payload) {
    if let Err(error) = context.store.drop_payload(owner, payload.payload).await {
        tracing::debug!(%error, "Failed to drop a body in pieces; it expires");
    }
}

/// Puts a body into pieces for their owner.
pub(crate) async fn in_pieces(context: &Context, owner: &str, body: &str) -> Result<Payload, ApiError> {
    let payload = context.store.put_payload(owner, body).await.map_err(|error| store_failed(&error))?;
    payload.ok_or_else(too_many_pieces)
}

pub(crate) fn too_many_pieces() -> ApiError {
    ApiError::new(Code::Unavailable, "too many pieces wait that were put or asked for by this sender; try again")
}

/// Sends a reply, in pieces if it does not fit into one message.
pub(crate) async fn reply<R: Serialize>(context: &Context, request: &Request, reply: &R) {
    let Some(body) = request.reply_if_it_fits(reply).await else { return };
    let text = str::from_utf8(&body).ok().filter(|text| text.len() <= MAX_BODY && request.takes_payloads());
    let Some((text, owner)) = text.zip(owner(request.subject())) else {
        return request.reply_too_large(body.len()).await;
    };
    match in_pieces(context, &owner, text).await {
        Ok(payload) => request.reply_apart(payload).await,
        Err(error) => request.reply_error(&error).await,
    }
}

/// A reply with the right to its memory, which is given back once it is sent.
pub(crate) struct Held<R> {
    reply: R,
    _memory: Option<Share>,
}

impl<R> Held<R> {
    pub(crate) const fn new(reply: R, memory: Option<Share>) -> Self {
        Self { reply, _memory: memory }
    }
}

impl<R: Serialize> Serialize for Held<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.reply.serialize(serializer)
    }
}
