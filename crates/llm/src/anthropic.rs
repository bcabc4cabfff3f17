//! The messages interface of Anthropic.

mod reply;
mod request;
mod stream;

pub use reply::reply;
pub use request::request;
pub(crate) use stream::Stream;

/// Marks data of this provider in [`redial_proto::TurnReply::provider`].
const KIND: &str = "anthropic";
