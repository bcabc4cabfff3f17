//! Work that takes a thread for longer than others may wait for it.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that may take up to a second. The tasks that wait for this thread move to another one meanwhile. The callers
/// are few: a thread runs such work only while one of them waits for it.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
