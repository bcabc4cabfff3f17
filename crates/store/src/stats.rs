//! Statistics: figures of the calls that ended in each hour.
//!
//! [`Store::roll_up`](crate::Store::roll_up) adds ended calls to the sums of their hours, outside of every transaction that
//! accepts, claims or ends calls. [`Store::stats`](crate::Store::stats) adds up hours, and counts live what is not in them yet.

mod answer;
mod histogram;
mod models;
mod question;
mod roll_up;
mod rows;
mod slice;
mod tally;

pub use histogram::{Histogram, RELATIVE_ERROR};
pub use models::{ModelGroup, ModelStats, PlaceLine, Places};
pub use question::{By, Group, GroupSums, ModelsBy, ModelsQuestion, Stats, StatsQuestion};
pub use roll_up::{Fence, RolledUp};
pub use slice::is_correctable;
pub use tally::{AttemptSums, CallSums, ModelSums, UsageSums, What};
