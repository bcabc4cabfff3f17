//! What is on record, as users see it: the same from a dispatcher, a gateway and the command line.

mod arguments;
mod call;
mod csv;
mod figures;
mod replay;
mod task_audit;

pub use arguments::check_arguments;
pub use call::{attempt_view, call_view, feedback};
pub use csv::csv_cell;
pub use figures::{figures, sort_groups};
pub use redial_engine::task::Difference;
pub use replay::SavedTask;
pub use task_audit::TaskAudit;
