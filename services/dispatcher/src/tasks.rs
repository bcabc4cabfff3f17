//! Tasks: what users ask of them, and how they advance.

mod accept;
pub(crate) mod advance;
pub(crate) mod cancel;
mod failing;
pub(crate) mod get;
pub(crate) mod submit;
