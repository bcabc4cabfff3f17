//! Workers: what they ask for.

pub(crate) mod accept;
pub(crate) mod claim;
pub(crate) mod forget;
pub(crate) mod heartbeat;
pub(crate) mod recheck;
pub(crate) mod register;
pub(crate) mod release;
mod returned;
