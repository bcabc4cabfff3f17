//! The short queue: a tool that nobody has, a pool without workers and a long outage cost the others nothing, and every call
//! still ends.

mod ends;
mod failing;
mod fixture;
mod packs;
mod recovery;
mod serving;
mod window;
