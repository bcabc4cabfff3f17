//! Values as columns hold them.

use redial_proto::CallId;
use uuid::Uuid;

/// Removes U+0000, which Postgres's `text` cannot hold; everything else is kept.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Converts to Postgres's `int`; anything larger than Redial's own limits allow is cut to the largest.
pub(crate) fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Converts a span in ms to Postgres's `bigint`, cut in the same way.
pub(crate) fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts Postgres's `int`; Redial's own columns are never negative.
pub(crate) fn uint(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Converts Postgres's `bigint`; Redial's own columns are never negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Writes a list as JSON; `None` if it is empty. Lists of Redial's own types always have JSON.
pub(crate) fn json_list<T: serde::Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| serde_json::to_string(list).ok()).flatten()
}

/// Returns one field of many rows, as an array that a statement takes.
pub(crate) fn column<'a, R, T>(rows: &'a [R], field: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(field).collect()
}

/// Returns a field that often no row has: then nothing is sent for it, and UNNEST fills it up with NULLs.
pub(crate) fn sparse<'a, R, T>(rows: &'a [R], field: impl Fn(&'a R) -> Option<T>) -> Vec<Option<T>> {
    let column = column(rows, field);
    if column.iter().any(Option::is_some) { column } else { Vec::new() }
}

/// Returns ids without repetitions, for statements that look each of them up.
pub(crate) fn distinct(ids: &[CallId]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
