//! Cancels a call.

use redial_proto::{ApiError, CancelReply, CancelRequest};

use crate::asked::Asked;

pub(crate) async fn cancel(asked: Asked, request: CancelRequest) -> Result<CancelReply, ApiError> {
    Ok(CancelReply { state: asked.cancel(request.call).await? })
}
