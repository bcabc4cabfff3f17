//! Tasks on real servers: a dispatcher, a worker with tools, and a worker with models whose provider is a scripted HTTP
//! server. The requests to that server show what the models see.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "agent_loop/conversations.rs"]
mod conversations;
#[path = "agent_loop/correcting.rs"]
mod correcting;
#[path = "agent_loop/cut_off.rs"]
mod cut_off;
#[path = "agent_loop/erasing.rs"]
mod erasing;
#[path = "agent_loop/failing_programs.rs"]
mod failing_programs;
#[path = "agent_loop/faults.rs"]
mod faults;
#[path = "agent_loop/fixture.rs"]
mod fixture;
#[path = "agent_loop/functions.rs"]
mod functions;
#[path = "agent_loop/large.rs"]
mod large;
#[path = "agent_loop/limits.rs"]
mod limits;
#[path = "agent_loop/offering.rs"]
mod offering;
#[path = "agent_loop/submitting.rs"]
mod submitting;
