//! What no program of a tool may ask of the kernel.
//!
//! Set on the thread that starts all programs, so every program and its descendants inherit it, and none can undo it. What stays
//! allowed is what sandboxes need that a tool itself may use, such as bubblewrap (`unshare`, `mount`).

use std::env::consts::ARCH;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// Reaching into other processes or into the kernel, and the machine itself. The calls of io_uring are not seen by filters.
/// Most of them need rights that programs lack; a flaw of the kernel or a capability too many must not give them away.
const REFUSED: [i64; 28] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
];

/// Confines this thread and what it starts: these calls fail with `EPERM`, and no program gets more rights than it started with
/// (`no_new_privs`), for example through sudo. Programs for another architecture than the worker's, such as 32 bits, are killed.
pub(super) fn confine_thread() -> Result<(), Error> {
    let refused = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let filter = SeccompFilter::new(
        refused,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        TargetArch::try_from(ARCH)?,
    )?;
    apply_filter(&BpfProgram::try_from(filter)?)
}
