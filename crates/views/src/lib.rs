//! What is on record, as users see it: the same from a dispatcher, a gateway and the command line.

mod arguments;
mod call;
mod csv;
mod figures;
mod ledger;
mod replay;
mod task_audit;

pub use arguments::{Checked, check_arguments};
pub use call::{attempt_view, call_view, feedback};
pub use csv::csv_cell;
pub use figures::{Counts, Figures, dollars, sort_groups};
pub use ledger::{Ran, ran};
pub use redial_engine::task::Difference;
pub use replay::SavedTask;
pub use task_audit::TaskAudit;
