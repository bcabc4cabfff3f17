//! Calls: what users ask of them, what workers report of them, and what is due.

pub(crate) mod answer;
pub(crate) mod cancel;
pub(crate) mod get;
pub(crate) mod ingest;
pub(crate) mod message;
pub(crate) mod redrive;
pub(crate) mod submit;
pub(crate) mod sweep;
