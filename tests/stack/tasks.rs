//! Tasks on real servers: the dispatcher's part of the agent loop, with scripted models and tools.

mod failing;
mod large;
mod outcomes;
mod script;
