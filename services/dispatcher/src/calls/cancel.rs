//! Cancels a call.

use redial_proto::{ApiError, CancelReply, CancelRequest};

use crate::{actions::Done, asked::Asked};

pub(crate) async fn cancel(asked: Asked, request: CancelRequest) -> Result<Done<CancelReply>, ApiError> {
    let (state, changed) = asked.cancel(request.call).await?;
    Ok(Done { reply: CancelReply { state }, changed: u64::from(changed) })
}
