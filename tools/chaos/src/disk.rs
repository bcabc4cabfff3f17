//! A small disk for the store of NATS, which can be filled.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use redial_testkit::unique_path;

/// Set in the environment of a process that has mounts of its own.
const APART: &str = "REDIAL_CHAOS_APART";
/// Many times the size of the streams of a usual run.
const SIZE: &str = "size=128m";

/// Replaces this process by one of the same program with mounts of its own, which no other process sees and which vanish
/// with its last process. Returns if it has such mounts already, or if that is not permitted here.
pub(crate) fn live_apart() {
    let quiet = |command: &mut Command| command.stdin(Stdio::null()).stderr(Stdio::null()).status();
    let permitted = || quiet(Command::new("unshare").args(["--mount", "true"])).is_ok_and(|status| status.success());
    if std::env::var_os(APART).is_some() || !permitted() {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut again = Command::new("unshare");
    again.args(["--mount", "--"]).arg(program).args(std::env::args_os().skip(1)).env(APART, "1");
    // exec returns only if it failed; then the run continues without a disk of its own.
    let _failed = again.exec();
}

#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    small: bool,
}

impl Disk {
    /// Mounts a small disk if that is permitted, or else creates a folder.
    pub(crate) fn make() -> io::Result<Self> {
        let folder = unique_path("disk");
        fs::create_dir(&folder)?;
        let mounted = || {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(&folder).stderr(Stdio::null());
            mount.status().is_ok_and(|status| status.success())
        };
        let small = std::env::var_os(APART).is_some() && mounted();
        Ok(Self { folder, small })
    }

    /// Returns its folder for the configuration of NATS.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("jetstream")
    }

    /// True if it can be filled.
    pub(crate) fn is_small(&self) -> bool {
        self.small
    }

    pub(crate) fn fill(&self) -> io::Result<()> {
        let mut ballast = File::create(self.ballast())?;
        let block = vec![0; 64 * 1024];
        while ballast.write_all(&block).is_ok() {}
        Ok(())
    }

    /// Frees the space again.
    pub(crate) fn free(&self) -> io::Result<()> {
        fs::remove_file(self.ballast())
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    pub(crate) fn wipe(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.store()) {
            // A running server creates and removes files meanwhile.
            Err(_) => fs::remove_dir_all(self.store()).or(Ok(())),
            done => done,
        }
    }
}
