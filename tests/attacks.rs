//! A whole Redial on a nats-server with the permissions that `redial nats-config` writes, and what hostile clients and workers
//! try there with the credentials of each role. `REDIAL_NATS_SERVER` names another nats-server than the project's.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "nats_permissions/client.rs"]
#[expect(dead_code, reason = "the other test uses more of it")]
mod client;
#[path = "attacks/floods.rs"]
mod floods;
#[path = "attacks/mistakes.rs"]
mod mistakes;
#[path = "nats_permissions/server.rs"]
#[expect(dead_code, reason = "the other test uses more of it")]
mod server;
#[path = "attacks/tenants.rs"]
mod tenants;
#[path = "attacks/workers.rs"]
mod workers;
#[path = "attacks/world.rs"]
mod world;
