//! How much a model may see.

/// Bytes of an old tool result that is cut to its beginning.
pub(super) const OLD_RESULT: u32 = 400;

/// Limits of a view.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest view, in estimated tokens.
    pub context_tokens: u32,
    /// Longest tool result, in bytes.
    pub result_bytes: u32,
    /// Longest view, in bytes of JSON.
    pub bytes: usize,
}
