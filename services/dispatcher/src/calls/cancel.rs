//! Cancels a call.

use std::sync::Arc;

use redial_proto::{ApiError, CancelReply, CancelRequest};

use crate::{context::Context, effects, transitions};

pub(crate) async fn cancel(context: Arc<Context>, request: CancelRequest) -> Result<CancelReply, ApiError> {
    let (state, effects) = transitions::cancel(&context, request.call).await?;
    effects::carry_out(&context, effects).await;
    Ok(CancelReply { state })
}
