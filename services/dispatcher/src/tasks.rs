//! Tasks: what users ask of them, and how they advance.

mod accept;
pub(crate) mod advance;
pub(crate) mod cancel;
mod failing;
mod functions;
pub(crate) mod get;
pub(crate) mod submit;
