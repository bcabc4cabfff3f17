//! Tasks on real servers: the dispatcher's part of the agent loop, with scripted models and obedient tools.

mod life;
mod replayed;
mod script;
mod submission;
