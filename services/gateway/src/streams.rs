//! What the streams of events of a gateway share.

pub(crate) mod live;
pub(crate) mod sse;
pub(crate) mod tails;

use self::{live::LiveTexts, tails::Tails};

#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) live: LiveTexts,
    pub(crate) tails: Tails,
}
