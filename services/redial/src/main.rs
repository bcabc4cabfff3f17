//! `redial`: every role and every command.

mod cli;
mod commands;
mod connect;

mod dev_folder;
mod environment;
mod exit;
mod help;
mod ids;
mod list;
mod output;
mod protect;
mod settings;
mod table;
mod timeline;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::{
    cli::Cli,
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
    protect::protect(&cli.command, || Settings::read(flags))?;
    let settings = Settings::read(flags);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(commands::run(cli.command, &settings))
}
