//! The version of the contract: which messages the processes of Redial send one another.
//!
//! A process sends messages of version [`CONTRACT`] and works with processes of all versions from [`OLDEST_CONTRACT`] on. A
//! worker says both when it registers. Messages of streams and requests say the version of their sender in the header
//! [`crate::subjects::CONTRACT`], unless it is the first one. What cannot be read and is of a newer version is left for a process
//! of that version; of any other it is wrong. `docs/UPGRADING.md` says when a number is raised.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the messages that this program sends.
pub const CONTRACT: u32 = 1;

/// The oldest version of the processes that this program works with.
pub const OLDEST_CONTRACT: u32 = 1;

/// The version of messages that name none.
pub const FIRST_CONTRACT: u32 = 1;

/// The versions that a process can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractRange {
    /// The oldest one.
    pub oldest: u32,
    /// The newest one: that of its own messages.
    pub newest: u32,
}

/// Why two processes cannot work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The other one is too old for this one.
    TooOld,
    /// The other one is too new for this one.
    TooNew,
}

impl ContractRange {
    /// The versions of this program.
    pub const OURS: Self = Self { oldest: OLDEST_CONTRACT, newest: CONTRACT };

    /// The range of a process that names none.
    pub const fn first() -> Self {
        Self { oldest: FIRST_CONTRACT, newest: FIRST_CONTRACT }
    }

    /// The newest version that both understand.
    pub fn agree(self, other: Self) -> Result<u32, Disagreement> {
        if other.newest < self.oldest {
            return Err(Disagreement::TooOld);
        }
        if self.newest < other.oldest {
            return Err(Disagreement::TooNew);
        }
        Ok(self.newest.min(other.newest))
    }
}

/// The version of a message without a version.
pub(crate) const fn first() -> u32 {
    FIRST_CONTRACT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_work_with_the_newest_version_that_both_understand() {
        let range = |oldest, newest| ContractRange { oldest, newest };
        let rows = [
            (range(1, 1), range(1, 1), Ok(1)),
            (range(1, 2), range(1, 1), Ok(1)),
            (range(1, 2), range(2, 3), Ok(2)),
            (range(2, 3), range(1, 1), Err(Disagreement::TooOld)),
            (range(1, 1), range(2, 3), Err(Disagreement::TooNew)),
        ];
        for (ours, theirs, wanted) in rows {
            assert_eq!(ours.agree(theirs), wanted, "{ours:?} {theirs:?}");
        }
        assert_eq!(
            ContractRange::OURS.agree(ContractRange::first()),
            Ok(1),
            "whatever names no version is of the first"
        );
    }
}
