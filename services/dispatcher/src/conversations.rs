//! Conversations and tenants as a whole: what is erased of them.

mod count;
mod erase;
pub(crate) mod finish;
pub(crate) mod forget;
