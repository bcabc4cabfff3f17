//! The version of the contract: which messages the processes of Redial send one another.
//!
//! A process works with processes of its own version and of its neighbours, so that one version can replace the other while both run.
//! A worker says its version when it registers; messages of streams and requests say that of their sender in the header
//! [`crate::subjects::CONTRACT`], unless it is the first one. A message that cannot be read is left for a process that can if its
//! sender is of a newer version, and is wrong otherwise. `docs/UPGRADING.md` says when the number is raised.

/// The version of the messages that this program sends.
pub const CONTRACT: u32 = 1;

/// The version of messages that name none.
pub const FIRST_CONTRACT: u32 = 1;

/// Whether processes of these versions work together.
pub const fn are_neighbours(one: u32, other: u32) -> bool {
    one.abs_diff(other) <= 1
}

pub(crate) const fn first() -> u32 {
    FIRST_CONTRACT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_works_with_its_own_version_and_its_neighbours() {
        let works = [0, 1, 2, 3, 4, u32::MAX].map(|other| are_neighbours(2, other));
        assert_eq!(works, [false, true, true, true, false, false]);
    }
}
