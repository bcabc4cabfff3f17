//! Webhooks: what users do with them, and the loop that turns ends of calls and tasks into deliveries.

pub(crate) mod create;
pub(crate) mod delete;
mod deliver;
pub(crate) mod follow;
mod payload;
pub(crate) mod rotate;
mod secret;
pub(crate) mod test;
pub(crate) mod update;
