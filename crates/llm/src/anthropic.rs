//! The messages interface of Anthropic.

mod reply;
mod request;
mod stream;

use redial_proto::{Failure, TurnReply, TurnRequest};

use crate::{answer, api::Api};

pub use reply::reply;
pub use request::request;
pub(crate) use stream::Stream;

/// An answer as its bytes came: a whole body, or a stream of events.
pub fn read(request: &TurnRequest, body: &[u8], streamed: bool) -> Result<TurnReply, Failure> {
    answer::read(Api::Anthropic, request, body, streamed)
}

/// What stands in [`redial_proto::TurnReply::provider`] to tell whose it is.
const KIND: &str = "anthropic";
