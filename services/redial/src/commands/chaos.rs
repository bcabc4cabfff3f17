//! `redial chaos`: the program `redial-chaos`, which lies beside this one. It carries test servers and proxies, which are
//! nothing to ship in here.

use std::{ffi::OsString, os::unix::process::CommandExt as _, process::Command};

use redial_proto::{ApiError, Code};

pub(crate) fn run(args: &[OsString]) -> anyhow::Result<std::process::ExitCode> {
    let program = std::env::current_exe()?.with_file_name("redial-chaos");
    if !program.exists() {
        let missing = format!(
            "{} is not built; in a checkout of the source, `./dev chaos` builds and runs it, and so does \
             `cargo build -p redial-chaos` for this command",
            program.display()
        );
        return Err(ApiError::new(Code::MissingProgram, missing).into());
    }
    // Comes back only if it failed.
    let error = Command::new(&program).args(args).exec();
    Err(ApiError::new(Code::MissingProgram, format!("{} cannot be started: {error}", program.display())).into())
}
