//! Answers what is on record of a call.

use std::sync::Arc;

use redial_proto::{ApiError, CallView, GetRequest};

use crate::{
    call_view::views,
    context::Context,
    error::{call_not_found, store_failed},
};

pub(crate) async fn get(context: Arc<Context>, request: GetRequest) -> Result<CallView, ApiError> {
    let views = views(&context, &[request.call], request.language).await.map_err(|error| store_failed(&error))?;
    views.into_iter().next().ok_or_else(|| call_not_found(request.call))
}
