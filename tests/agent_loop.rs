//! Tasks on real servers: a dispatcher, a worker with tools, a worker with models that asks a scripted HTTP server over
//! the provider's own protocol. What the models get to see is what that server was asked.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "agent_loop/conversations.rs"]
mod conversations;
#[path = "agent_loop/correcting.rs"]
mod correcting;
#[path = "agent_loop/faults.rs"]
mod faults;
#[path = "agent_loop/fixture.rs"]
mod fixture;
#[path = "agent_loop/limits.rs"]
mod limits;
#[path = "agent_loop/submitting.rs"]
mod submitting;
