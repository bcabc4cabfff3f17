//! The messages interface of Anthropic.

mod reply;
mod request;
mod stream;

pub use reply::reply;
pub use request::request;
pub(crate) use stream::Stream;

/// What stands in [`redial_proto::TurnReply::provider`] to tell whose it is.
const KIND: &str = "anthropic";
