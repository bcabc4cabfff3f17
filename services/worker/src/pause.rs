//! How long loops wait after a failure.

use std::time::Duration;

use redial_backoff::Backoff;

/// About 100, 200, 400 … ms up to `cap`. `failures` counts from 1.
pub(crate) fn after(failures: u32, cap: Duration) -> Duration {
    Backoff::new(Duration::from_millis(100), cap).after(failures)
}
