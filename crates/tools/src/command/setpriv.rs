//! The program that sets what a program starts with.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

/// setpriv, if it is installed and supports `--pdeathsig` (util-linux from 2.33; busybox does not).
pub(super) fn find() -> Option<PathBuf> {
    let found = ["/usr/bin/setpriv", "/bin/setpriv"].map(PathBuf::from).into_iter().find(|path| path.is_file());
    let works = |path: &PathBuf| {
        let mut trial = Command::new(path);
        trial.args(["--pdeathsig", "KILL", "--"]).arg(path).arg("--version");
        trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    };
    let setpriv = found.filter(works);
    if setpriv.is_none() {
        tracing::warn!("Found no setpriv with --pdeathsig: command tools may outlive a worker that is killed");
    }
    setpriv
}
