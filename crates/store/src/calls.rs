//! Calls: each verb is one statement for a whole batch, with a guard on what it expects.

mod apply;
mod backlog;
mod claim;
mod due;
mod facts;
mod late_reports;
mod load;
mod locked;
mod renew;
mod returned;
mod submit;
mod succeed;
mod take_back;

pub use apply::Applied;
pub use backlog::{Fed, Feed, Gap, MAX_FED, Position, Recovery};
pub use claim::Granted;
pub use due::{DueCalls, LockedCalls};
pub use late_reports::LateReport;
pub use renew::Held;
pub use returned::ReturnedJob;
pub use submit::Submitted;
pub(crate) use submit::insert;
pub use take_back::{HeldGrant, LostGrant};
