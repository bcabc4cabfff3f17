//! Workers: what they ask for.

pub(crate) mod claim;
pub(crate) mod heartbeat;
pub(crate) mod register;
pub(crate) mod release;
