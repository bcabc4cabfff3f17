//! The environment that this process was started with, also after secrets have left it.
//!
//! What a process was started with stays readable in `/proc/<pid>/environ` and `/proc/<pid>/cmdline` as long as it runs, also
//! if it removes its variables later. So a role that finds secrets there executes itself once more, under the same process id,
//! without them: they reach the second execution through an anonymous file as its standard input, which is emptied there.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{Read, Seek},
    os::{fd::AsFd, unix::process::CommandExt},
    path::PathBuf,
    process::Command,
    sync::OnceLock,
};

use rustix::fs::{MemfdFlags, memfd_create};

/// Tells the second execution that its standard input has the secrets; the value is its process id, so that programs that
/// inherit it do not believe it.
const MARKER: &str = "REDIAL_SECRETS_ON_STDIN";

/// The secrets that are in the environment no more.
static KEPT: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// The value of a variable that this process was started with.
pub(crate) fn variable(name: &str) -> Option<String> {
    KEPT.get().and_then(|kept| kept.get(name).cloned()).or_else(|| std::env::var(name).ok())
}

/// True in the second execution.
pub(crate) fn is_second_execution() -> bool {
    std::env::var(MARKER).is_ok_and(|marker| marker == std::process::id().to_string())
}

/// Executes this program again; returns only if that fails.
pub(crate) fn start_again(arguments: Vec<OsString>, secrets: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut file = File::from(memfd_create("redial", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, secrets)?;
    file.rewind()?;
    // A program that was replaced meanwhile has no path any more.
    let path = std::env::current_exe().ok().filter(|path| path.exists());
    let mut program = Command::new(path.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    let mut arguments = arguments.into_iter();
    if let Some(name) = arguments.next() {
        program.arg0(name);
    }
    program.args(arguments).env(MARKER, std::process::id().to_string()).stdin(file);
    for name in secrets.keys() {
        program.env_remove(name);
    }
    Err(program.exec().into())
}

/// Reads the secrets, and empties the file that they were in.
pub(crate) fn receive_secrets() -> anyhow::Result<()> {
    let mut file = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let kept = serde_json::from_str(&text)?;
    file.set_len(0)?;
    let _ = KEPT.set(kept);
    Ok(())
}
