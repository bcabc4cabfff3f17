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

#[cfg(test)]
mod tests {
    use redial_proto::{CallState, ErrorClass, TaskState};

    use super::*;

    #[test]
    fn states_and_classes_are_completed() {
        let bash = script(Shell::Bash).unwrap();
        // The words that bash offers behind a flag, for each command that has it.
        let offered = |flag: &str| -> Vec<&str> {
            let head = format!("                {flag})\n");
            let branches = bash.split(&head).skip(1);
            branches
                .filter_map(|branch| branch.split_once("compgen -W \"")?.1.split_once('"'))
                .map(|(words, _)| words)
                .collect()
        };
        let calls = CallState::ALL.map(CallState::as_str).join(" ");
        let tasks = TaskState::ALL.map(TaskState::as_str).join(" ");
        let classes = ErrorClass::ALL.map(ErrorClass::as_str).join(" ");
        assert_eq!(offered("--state"), [calls.as_str(), "failed unknown cancelled", &tasks]);
        assert_eq!(offered("--class"), [classes.as_str(); 2], "of history and redrive");
    }
}
