//! Keeps other processes out of this one.

use std::{fs, io, os::fd::BorrowedFd};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{DumpableBehavior, set_dumpable_behavior},
};

/// Makes this process undumpable: other processes of the same user can then neither trace it nor read its memory, its
/// environment or its open files in `/proc`, and it leaves no core dump. Programs that it starts do not inherit the files that
/// were open when it started, either: another user could read and write through them what it may not open. Call it first
/// in `main`, before anything else reads a secret; programs that a worker starts run as its user unless
/// [`crate::WorkerConfig::command_user`] says otherwise, and they would read all of its secrets there.
///
/// Processes that it starts are not covered: the kernel makes them dumpable when they execute a program. Root, and who has
/// `CAP_SYS_PTRACE`, is not kept out. `docs/SECURITY.md` says what else is not.
///
/// # Errors
///
/// Fails only where the kernel refuses it, for example a sandbox that forbids `prctl` or has no `/proc`.
pub fn protect_process() -> io::Result<()> {
    close_files_on_exec()?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Marks all open files but the three standard ones as closed on execution. What is opened later is marked from the beginning.
fn close_files_on_exec() -> io::Result<()> {
    for file in fs::read_dir("/proc/self/fd")? {
        let Some(number) = file?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if number > 2 {
            #[expect(unsafe_code, reason = "a number is the only way to name a file that another process opened")]
            // SAFETY: the kernel just listed it as open, and it is used for this call only. Were it closed meanwhile, the
            // call would fail, or mark another file of this process, which is as right.
            let file = unsafe { BorrowedFd::borrow_raw(number) };
            // The list itself is among them.
            match fcntl_setfd(file, FdFlags::CLOEXEC) {
                Ok(()) | Err(rustix::io::Errno::BADF) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
