//! `redial completions`.

use std::process::ExitCode;

pub(crate) fn run(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::help::command(), "redial", &mut script);
    crate::output::line(String::from_utf8(script)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
