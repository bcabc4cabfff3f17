//! Webhooks on real servers: what a receiver gets, what is retried, and what never happens.

mod fixture;
mod following;
mod keys;
mod managing;
mod receiving;
mod sharing;
mod standard;
mod tasks;
