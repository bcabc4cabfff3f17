//! Keeps other processes out of this one.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Makes this process undumpable: other processes of the same user can then neither trace it nor read its memory, its
/// environment or its open files in `/proc`, and it leaves no core dump. Call it first in `main`, before anything else reads a
/// secret; programs that a worker starts run as its user unless [`crate::WorkerConfig::command_user`] says otherwise, and
/// they would read all of its secrets there.
///
/// Processes that it starts are not covered: the kernel makes them dumpable when they execute a program. Root, and who has
/// `CAP_SYS_PTRACE`, is not kept out. `docs/SECURITY.md` says what else is not.
///
/// # Errors
///
/// Does nothing and fails only where the kernel refuses it, for example a sandbox that forbids `prctl`.
pub fn protect_process() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
