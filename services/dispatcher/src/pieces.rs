//! Bodies that do not fit into one message: keeps their pieces, puts them together, and takes them apart.
//!
//! Any dispatcher takes any piece, because they are in Postgres. What one of them holds of whole bodies is bounded, for all senders
//! together: bodies wait for their turn in pieces.

use std::sync::Arc;

use redial_proto::{
    ApiError, Code, GrantRef, Payload, PieceReply, PieceRequest, WorkerCaller,
    limits::{MAX_PIECE, MAX_PIECES},
};
use redial_records::turn::Missing;
use redial_store::{StoreError, Unexpanded};
use tokio_util::sync::CancellationToken;

use crate::{
    apart::{self, assembled, owner},
    asked::Asked,
    context::Context,
    error::store_failed,
    serve::{self, check_own},
    wait::until,
    workers::recheck,
};

/// The most bytes of a request with a piece: as a JSON string it takes up to twice as much.
pub(crate) const MOST_BYTES: usize = 2 * MAX_PIECE + 4096;

/// Puts bodies together, until the shutdown.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    while let Some(Some(((mut request, waiting), _share))) = until(&shutdown, context.bodies.next()).await {
        let apart = request.apart.take();
        let Some((payload, owner)) = apart.zip(owner(request.subject())) else { continue };
        match assembled(&context, &owner, payload).await {
            Ok((body, memory)) => {
                // Whoever gets no answer sends all of it again.
                apart::forget(&context, &owner, payload).await;
                (request.payload, request.held) = (body, memory);
                if let Err(refused) = serve::add(&waiting, request) {
                    serve::refuse(&refused).await;
                }
            }
            Err(error) => request.reply_error(&error.error(payload)).await,
        }
    }
    for (request, _) in context.bodies.close().await {
        serve::refuse(&request).await;
    }
}

pub(crate) async fn of_user(asked: Asked, request: PieceRequest) -> Result<PieceReply, ApiError> {
    let owner = apart::of_user(&asked.caller);
    piece(asked.for_pieces(), &owner, request).await
}

pub(crate) async fn of_worker(
    context: Arc<Context>,
    caller: WorkerCaller,
    request: PieceRequest,
) -> Result<PieceReply, ApiError> {
    let owner = apart::of_worker(&caller.identity);
    let PieceRequest::Open { worker, grant } = request else { return piece(&context, &owner, request).await };
    check_own(&caller, &worker)?;
    let failed = |error: StoreError| ApiError { code: Code::Unavailable, ..store_failed(&error) };
    let not_held = || {
        let message = format!("the worker does not hold attempt {} of call {}", grant.attempt, grant.call);
        ApiError::new(Code::WrongState, message)
    };
    let bytes = context.store.arguments_bytes(&worker, grant).await.map_err(failed)?.ok_or_else(not_held)?;
    let _memory = context.bodies.memory(&owner, bytes).await?;
    let opened = context.store.arguments_of(&worker, grant).await.map_err(failed)?.ok_or_else(not_held)?;
    let opened = opened.map_err(|why| not_together(grant, why))?;
    if !recheck::may_open(&context, grant, &opened).await? {
        return Err(not_held());
    }
    let opened = apart::in_pieces(&context, &owner, &opened.arguments).await?;
    Ok(PieceReply { opened: Some(opened), ..PieceReply::default() })
}

/// Returns the error of a body: at the code `internal` the worker ends the attempt; at `unavailable` it asks again.
fn not_together(grant: GrantRef, why: Unexpanded) -> ApiError {
    match why {
        Unexpanded::Missing(Missing(missing)) => {
            tracing::error!(call = %grant.call, missing, "Failed to put a turn together");
            ApiError::new(Code::Internal, format!("what the model is asked cannot be put together: {missing}"))
        }
        Unexpanded::NoRoom => ApiError::new(Code::Unavailable, "what the model is asked could not be read; try again"),
    }
}

async fn piece(context: &Context, owner: &str, request: PieceRequest) -> Result<PieceReply, ApiError> {
    let failed = |error| store_failed(&error);
    let store = &context.store;
    match request {
        PieceRequest::Put { payload, piece, text } => {
            check(payload, piece, &text)?;
            if !store.put_piece(owner, payload.payload, piece, &text).await.map_err(failed)? {
                return Err(apart::too_many_pieces());
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
    let wrong = |message: String| Err(ApiError::new(Code::InvalidValue, message));
    if !(1..=MAX_PIECES).contains(&payload.pieces) || piece >= payload.pieces {
        return wrong(format!(
            "piece {piece} of {}; allowed: 0 to pieces - 1, and 1 to {MAX_PIECES} pieces",
            payload.pieces
        ));
    }
    if text.is_empty() || text.len() > MAX_PIECE {
        return wrong(format!("text has {} bytes; allowed: 1 to {MAX_PIECE}", text.len()));
    }
    if text.contains('\0') {
        return wrong("text contains U+0000, which JSON writes as \\u0000".to_owned());
    }
    Ok(())
}
