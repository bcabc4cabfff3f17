//! Pieces of an answer that is being written.

/// Text that was added to an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) thought: String,
}

/// Receives the pieces of an answer.
pub(crate) type Watch<'a> = &'a mut (dyn FnMut(Piece) + Send);
