//! Answers what is on record of a call.

use redial_proto::{ApiError, CallView, GetRequest};
use redial_views::call_view;

use crate::{
    apart::{self, Held},
    asked::Asked,
    error::{call_not_found, store_failed},
};

pub(crate) async fn get(asked: Asked, request: GetRequest) -> Result<Held<CallView>, ApiError> {
    // What is large waits for memory.
    let context = asked.for_pieces();
    let bytes = context.store.record_bytes(request.call).await.map_err(|error| store_failed(&error))?;
    let memory = context.bodies.memory(&apart::of_user(&asked.caller), bytes).await?;
    let records = asked.store().records_of(&[request.call]).await.map_err(|error| store_failed(&error))?;
    let record = records.into_iter().next().ok_or_else(|| call_not_found(request.call))?;
    Ok(Held::new(call_view(record, request.language), memory))
}
