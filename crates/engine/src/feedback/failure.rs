//! A call that has no result.

use redial_proto::{Failure, Help};

/// A call that has no result, and what its model is told about it.
#[derive(Clone, Copy, Debug)]
pub struct CallFailure<'a> {
    pub tool: &'a str,
    /// The arguments as the model wrote them: they are known to it and need not be hidden from it.
    pub sent: &'a str,
    /// Why it failed. Its `effect_possible` means here that the outcome is unknown: an unsafe tool may or may not have done
    /// its work.
    pub failure: &'a Failure,
    /// What helps to correct refused arguments.
    pub help: Option<&'a Help>,
    /// How often the model may correct it; `None` where a correction would not help.
    pub corrections_left: Option<u32>,
}

impl<'a> CallFailure<'a> {
    /// Makes a failure without anything that helps to correct it.
    pub const fn new(tool: &'a str, failure: &'a Failure) -> Self {
        Self { tool, sent: "", failure, help: None, corrections_left: None }
    }
}
