//! Conversations and tenants as a whole: what is erased of them.

pub(crate) mod erase;
pub(crate) mod forget;
