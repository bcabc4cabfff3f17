//! `redial completions`.

use std::process::ExitCode;

use clap_complete::Shell;

pub(crate) fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    crate::output::line(script(shell)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> anyhow::Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::help::command(), "redial", &mut script);
    Ok(String::from_utf8(script)?)
}
