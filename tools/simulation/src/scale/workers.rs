//! The table of workers while somebody holds an old snapshot: no version that a heartbeat replaced can be removed.

use super::{inputs as given, table::Table};

/// Versions after so many seconds.
fn versions(workers: f64, seconds: f64) -> f64 {
    workers * (1.0 + seconds / (given::LEASE.value / 3.0))
}

/// How long one look takes: every version is stepped over, and each worker's consumer looked up.
fn look(workers: f64, seconds: f64) -> f64 {
    versions(workers, seconds) * given::VERSION.value + workers * given::LOOKED_UP.value
}

pub(super) fn table() -> Table {
    let title = "(b) looks at the workers while a pg_dump holds its snapshot";
    let columns = vec!["dispatchers", "workers", "hours", "versions", "ms a look", "cores for looks"];
    let mut table = Table::new(title, columns);
    for (dispatchers, workers) in [(2.0, 100.0), (3.0, 1_000.0), (10.0, 1_000.0), (10.0, 10_000.0), (100.0, 10_000.0)] {
        for hours in [0.0, 1.0, 5.0] {
            let (seconds, each) = (hours * 3_600.0, 1.0 / given::LOOKING.value);
            let look = look(workers, seconds);
            table.add(vec![
                dispatchers.into(),
                workers.into(),
                hours.into(),
                versions(workers, seconds).into(),
                (look * 1_000.0).into(),
                (look * dispatchers * each).into(),
            ]);
        }
    }
    table
}
