//! Tasks on real servers: a dispatcher, a worker with tools, and a worker with models whose provider is a scripted HTTP
//! server. The requests to that server show what the models see.

mod conversations;
pub(crate) mod erasing;
mod faults;
mod fixture;
mod functions;
mod limits;
mod offering;
mod submitting;
