//! A rule of a script.

use super::{response::Response, when::When};

/// Answers a request that matches.
pub(super) struct Rule {
    /// Its name or number, for messages.
    pub(super) name: String,
    pub(super) when: When,
    /// Answers at most this many requests of one turn, so that a retry gets another rule.
    pub(super) times: Option<u32>,
    pub(super) response: Response,
}
