//! Bodies that do not fit into one message: keeps their pieces, puts them together, and takes them apart.
//!
//! Any dispatcher takes any piece, because they are in Postgres. What one of them holds of whole bodies is bounded, for all senders
//! together: bodies wait for their turn in pieces.

use std::sync::Arc;

use redial_proto::{
    ApiError, Code, Payload, PieceReply, PieceRequest, WorkerCaller,
    limits::{MAX_BODY, MAX_PAYLOAD, MAX_PIECE},
    subjects,
};
use redial_queue::Request;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::{
    asked::Asked,
    context::Context,
    error::store_failed,
    fair_queue::FairQueue,
    serve::{self, check_own},
    wait::until,
};

/// The most bytes of a request with a piece: as a JSON string it takes up to twice as much.
pub(crate) const MOST_BYTES: usize = 2 * MAX_PIECE + 4096;
/// Memory for whole bodies at once, in units of [`UNIT`]: 256 MiB.
const UNITS: u32 = 256;
const UNIT: usize = 1024 * 1024;
/// What a body takes for each of its bytes while it is worked on: itself, and what was read from it.
const COPIES: usize = 3;

/// Bodies that wait to be put together, and the memory for them.
pub(crate) struct Bodies {
    waiting: FairQueue<(Request, Arc<FairQueue<Request>>)>,
    memory: Arc<Semaphore>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { waiting: FairQueue::default(), memory: Arc::new(Semaphore::new(UNITS as usize)) }
    }
}

impl Bodies {
    /// A request whose body is in pieces waits here, and then where the others of its kind do. Gives it back if too many wait.
    pub(crate) fn add(
        &self,
        sender: &str,
        request: Request,
        next: Arc<FairQueue<Request>>,
    ) -> Result<(), Box<Request>> {
        self.waiting.add(sender, (request, next), 0).map_err(|(request, _)| Box::new(request))
    }

    /// Waits for the memory to work on a body of so many bytes.
    pub(crate) async fn memory(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.saturating_mul(COPIES).div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS);
        self.memory.clone().acquire_many_owned(units).await.ok()
    }
}

/// Whose pieces belong to the sender of a message. `None` if its subject names nobody.
pub(crate) fn owner(subject: &str) -> Option<String> {
    if let Some(caller) = subjects::caller(subject) {
        return Some(format!("user {}.{}", caller.tenant, caller.user));
    }
    let identity = subjects::worker_caller(subject).map(|worker| worker.identity);
    identity.or_else(|| subjects::results_identity(subject)).map(|identity| format!("worker {identity}"))
}

/// Puts bodies together, until the shutdown.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    while let Some(Some(mut next)) = until(&shutdown, context.bodies.waiting.take(1)).await {
        let Some((mut request, waiting)) = next.pop() else { continue };
        let apart = request.apart.take();
        let Some((payload, owner)) = apart.zip(owner(request.subject())) else { continue };
        match assembled(&context, &owner, payload).await {
            Ok((body, memory)) => {
                (request.payload, request.held) = (body, Some(memory));
                if let Err(refused) = serve::add(&waiting, request) {
                    serve::refuse(&refused).await;
                }
            }
            Err(error) => request.reply_error(&error).await,
        }
    }
    for (request, _) in context.bodies.waiting.close(std::time::Duration::ZERO).await {
        serve::refuse(&request).await;
    }
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

/// Answers a user.
pub(crate) async fn of_user(asked: Asked, request: PieceRequest) -> Result<PieceReply, ApiError> {
    let owner = format!("user {}.{}", asked.caller.tenant, asked.caller.user);
    piece(asked.for_pieces(), &owner, request).await
}

/// Answers a worker.
pub(crate) async fn of_worker(
    context: Arc<Context>,
    caller: WorkerCaller,
    request: PieceRequest,
) -> Result<PieceReply, ApiError> {
    let owner = format!("worker {}", caller.identity);
    let PieceRequest::Open { worker, grant } = request else { return piece(&context, &owner, request).await };
    check_own(&caller, &worker)?;
    let failed = |error| store_failed(&error);
    let _memory = context.bodies.memory(MAX_PAYLOAD).await;
    let arguments = context.store.arguments_of(&worker, grant).await.map_err(failed)?.ok_or_else(|| {
        let message = format!("the worker does not hold attempt {} of call {}", grant.attempt, grant.call);
        ApiError::new(Code::WrongState, message)
    })?;
    let opened = context.store.put_payload(&owner, &arguments).await.map_err(failed)?;
    Ok(PieceReply { opened: Some(opened), ..PieceReply::default() })
}

async fn piece(context: &Context, owner: &str, request: PieceRequest) -> Result<PieceReply, ApiError> {
    let failed = |error| store_failed(&error);
    let store = &context.store;
    match request {
        PieceRequest::Put { payload, piece, text } => {
            check(payload, piece, &text)?;
            if !store.put_piece(owner, payload.payload, piece, &text).await.map_err(failed)? {
                let message = "too many pieces of this sender wait; try again";
                return Err(ApiError::new(Code::Unavailable, message));
            }
        }
        PieceRequest::Get { payload, piece } => {
            let text = store.piece(owner, payload, piece).await.map_err(failed)?;
            return Ok(PieceReply { text, ..PieceReply::default() });
        }
        PieceRequest::Drop { payload } => store.drop_payload(owner, payload).await.map_err(failed)?,
        PieceRequest::Open { .. } => {
            return Err(ApiError::new(Code::Forbidden, "only workers open the arguments of grants"));
        }
    }
    Ok(PieceReply::default())
}

fn check(payload: Payload, piece: u32, text: &str) -> Result<(), ApiError> {
    let most = u32::try_from(MAX_BODY).unwrap_or(u32::MAX) / 1024;
    let wrong = |message: String| Err(ApiError::new(Code::InvalidValue, message));
    if !(1..=most).contains(&payload.pieces) || piece >= payload.pieces {
        return wrong(format!("piece {piece} of {}; allowed: 0 to pieces - 1, and 1 to {most} pieces", payload.pieces));
    }
    if text.is_empty() || text.len() > MAX_PIECE {
        return wrong(format!("text has {} bytes; allowed: 1 to {MAX_PIECE}", text.len()));
    }
    Ok(())
}
