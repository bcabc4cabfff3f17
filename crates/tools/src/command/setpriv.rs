//! The program that sets what a program starts with.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The program setpriv of util-linux.
pub(super) struct Setpriv {
    pub(super) path: PathBuf,
    /// Whether this process may empty the bounding set of what it starts: it needs `CAP_SETPCAP`, as root has.
    pub(super) drops_bounds: bool,
}

/// Finds setpriv, if it is installed and supports `--pdeathsig` (util-linux from 2.33; busybox does not).
pub(super) fn find() -> Option<Setpriv> {
    let found = ["/usr/bin/setpriv", "/bin/setpriv"].map(PathBuf::from).into_iter().find(|path| path.is_file());
    let setpriv = found.filter(|path| runs(path, &["--pdeathsig", "KILL"]));
    if setpriv.is_none() {
        tracing::warn!("Found no setpriv with --pdeathsig: command tools may outlive a worker that is killed");
    }
    setpriv.map(|path| Setpriv { drops_bounds: runs(&path, &["--bounding-set=-all"]), path })
}

/// True if setpriv starts a program with these arguments.
pub(super) fn runs<A: AsRef<OsStr>>(setpriv: &Path, arguments: &[A]) -> bool {
    let mut trial = Command::new(setpriv);
    trial.args(arguments).arg("--").arg(setpriv).arg("--version");
    trial.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}
