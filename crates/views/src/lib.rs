//! What is on record, as users see it: the same from a dispatcher and from a gateway.

mod call;
mod figures;

pub use call::{attempt_view, call_view, feedback};
pub use figures::{Counts, Figures, sort_groups};
