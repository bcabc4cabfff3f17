//! How much a model may see.

/// Bytes of an old tool result that is cut to its beginning.
pub(super) const OLD_RESULT: u32 = 400;

/// Returns the longest feedback that is always read as a whole, in bytes, by the limit of a tool result: a reader takes
/// a text that is not twice as long as its limit with all that it has.
pub const fn whole_feedback(result_bytes: u32) -> usize {
    result_bytes as usize * 2
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest view, in estimated tokens.
    pub context_tokens: u32,
    /// Longest tool result, in bytes.
    pub result_bytes: u32,
    /// Longest view, in bytes of JSON.
    pub bytes: usize,
}
