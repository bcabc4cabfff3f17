//! Statistics: figures of the calls that ended in each hour.
//!
//! The statement that ends a call puts it into a queue. [`Store::roll_up`](crate::Store::roll_up) takes calls from there and adds them to
//! the sums of their hours; [`Store::stats`](crate::Store::stats) adds up hours, and counts live what is in the queue.

mod answer;
mod histogram;
mod models;
mod question;
pub(crate) mod roll_up;
mod rows;
mod slice;
mod tally;

pub use histogram::{Histogram, RELATIVE_ERROR};
pub use models::{ModelGroup, ModelStats, PlaceLine, Places};
pub use question::{By, Group, GroupSums, ModelsBy, ModelsQuestion, Stats, StatsQuestion, kept};
pub use roll_up::RolledUp;
pub use slice::is_correctable;
pub(crate) use tally::Kind;
pub use tally::{AttemptSums, CallSums, ModelSums, UsageSums, What};
