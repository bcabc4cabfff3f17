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

use crate::{cli::Cli, settings::Settings};

fn main() -> ExitCode {
    // The derived command line, with examples and without repetitions; it parses the same.
    let parsed = help::command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(help) => return exit::help(&help),
    };
    let json = cli.settings.json;
    match run(cli) {
        Ok(code) => code,
        Err(error) => exit::report(&error, json),
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    protect::protect(&cli.command, || Settings::read(&cli.settings))?;
    let settings = Settings::read(&cli.settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(commands::run(cli.command, &settings))
}
