//! `redial`: every role and every command.

mod cli;
mod commands;
mod connect;
mod exit;
mod ids;
mod json_search;
mod json_text;
mod output;
mod settings;
mod table;
mod task_audit;
mod timeline;

use std::process::ExitCode;

use clap::Parser;

use crate::{cli::Cli, settings::Settings};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(help) => return exit::help(&help),
    };
    let json = cli.settings.json;
    let done = Settings::read(&cli.settings).map_err(anyhow::Error::from).and_then(|settings| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(commands::run(cli.command, &settings))
    });
    match done {
        Ok(code) => code,
        Err(error) => exit::report(&error, json),
    }
}
