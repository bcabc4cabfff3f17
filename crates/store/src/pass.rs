//! How far a pass over a queue of ends is.

/// A place in a queue of ends. While somebody holds an old snapshot, rows that were taken stay in the way of whoever begins at the
/// first one, so the steps of a pass go on behind one another.
#[derive(Clone, Debug)]
pub struct Pass(String);

impl Default for Pass {
    fn default() -> Self {
        Self("(0,0)".to_owned())
    }
}

impl Pass {
    /// Returns behind which row the next step begins.
    pub(crate) fn place(&self) -> &str {
        &self.0
    }

    /// Takes note of the last row that a step took, if it took one.
    pub(crate) fn went_to(&mut self, last: Option<String>) {
        if let Some(last) = last {
            self.0 = last;
        }
    }
}
