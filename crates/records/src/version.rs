//! The version of what is on record: of the values in rows, and of the JSON in them.

/// The version of the records that this program writes.
///
/// It is raised by a program that writes something an earlier one cannot read: another value of a closed set, or another meaning of
/// a field. A new column or field that earlier programs may ignore does not raise it. `docs/UPGRADING.md` has the rules.
pub const RECORDS: u32 = 1;
