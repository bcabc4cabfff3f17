//! Stops a call.

use std::sync::Arc;

use redial_engine::Event;
use redial_proto::{ApiError, CallId, CallState, CancelReply, CancelRequest, Code};

use crate::{decide, error::store_failed, get::not_found, shared::Shared};

pub(crate) async fn cancel(shared: Arc<Shared>, request: CancelRequest) -> Result<CancelReply, ApiError> {
    Ok(CancelReply { state: stop(&shared, request.call).await? })
}

/// Stops a call; where it stands then.
pub(crate) async fn stop(shared: &Shared, call: CallId) -> Result<CallState, ApiError> {
    // The call may move between the look and the write, a few times at most: it has few states to move through.
    for _ in 0..10 {
        let rows = shared.store.load(&[call]).await.map_err(|error| store_failed(&error))?;
        let row = rows.first().ok_or_else(|| not_found(call))?;
        let Some(change) = decide::change(&shared.registry, row, &Event::Cancel, None) else {
            return Ok(row.state);
        };
        let changes = [change];
        let applied = shared.store.apply(&changes).await.map_err(|error| store_failed(&error))?;
        if !applied.is_empty() {
            decide::act(shared, &changes, applied).await;
            return Ok(changes[0].state);
        }
    }
    Err(ApiError::new(Code::Unavailable, "the call changes too fast to be cancelled now; try again"))
}
