//! Tokens for HTTP: create, revoke. A gateway reads them by itself.

pub(crate) mod create;
pub(crate) mod revoke;
