//! Everything that is decided about a call.
//!
//! [`plan`] turns a call on record and an event into a transition. After the commit, [`effects`] says what has to be
//! done. [`grants`], [`renews`] and [`takes_back`] state what guarded statements of the store decide by themselves.

mod claim;
mod effects;
mod plan;
mod redrive;

pub use claim::{grants, renews, takes_back};
pub use effects::{effects, submitted};
pub use plan::{CallEvent, EXTENSION_MS, JobState, TIMEOUT_MARGIN_MS, Waiting, plan, succeeded};
pub use redrive::{check_create_redrive, may_redrive, may_redrive_edited, redriven};
