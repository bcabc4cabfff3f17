//! `redial`: every role and every command.

mod cli;
mod commands;
mod connect;

mod dev_folder;
mod exit;
mod help;
mod ids;
mod list;
mod output;
mod settings;
mod table;
mod timeline;

use std::process::ExitCode;

use anyhow::Context;
use clap::FromArgMatches;

use crate::{
    cli::{Cli, Command},
    settings::{Flags, Settings},
};

fn main() -> ExitCode {
    // The derived command line, with examples and without repetitions; it parses the same.
    let parsed = help::command().try_get_matches();
    let parsed = parsed.and_then(|found| Ok((Cli::from_arg_matches(&found)?, Flags::of(&found))));
    let (cli, flags) = match parsed {
        Ok(parsed) => parsed,
        Err(help) => return exit::help(&help),
    };
    match run(cli, &flags) {
        Ok(code) => code,
        Err(error) => exit::report(&error, flags.json),
    }
}

fn run(cli: Cli, flags: &Flags) -> anyhow::Result<ExitCode> {
    if matches!(&cli.command, Command::Worker | Command::Dev(_) | Command::Dispatcher | Command::Gateway) {
        // Before it starts a thread or reads a secret.
        redial_worker::protect_process()
            .context("this process cannot be protected from others (prctl PR_SET_DUMPABLE)")?;
    }
    let settings = Settings::read(flags);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(commands::run(cli.command, &settings))
}
