//! The short queue: a tool that nobody has, a pool without workers, a long outage and a wiped store cost the others
//! nothing, and every call still ends.

mod ends;
mod fixture;
mod packs;
mod recovery;
mod serving;
mod window;
