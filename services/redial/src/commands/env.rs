//! `redial env`: what a client, a worker or a dispatcher needs to connect, as shell exports.

mod login;
mod shell;

use std::process::ExitCode;

use redial_proto::{ApiError, Code};

use self::{login::Login, shell::exports};
use crate::{cli::EnvArgs, commands::nats_config, dev_folder, output, settings::Settings};

/// Where nats-server listens unless something else is said.
const SERVER: &str = "127.0.0.1:4222";

pub(crate) fn run(settings: &Settings, args: &EnvArgs) -> anyhow::Result<ExitCode> {
    let variables = match variables(settings, args) {
        Ok(variables) => variables,
        Err(error) => {
            if !settings.json() {
                output::write(shell::FAILURE)?;
            }
            return Err(error.into());
        }
    };
    if settings.json() {
        let object: serde_json::Map<_, _> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        output::json(&object)?;
    } else {
        output::write(&exports(&variables))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns names and values, in the order in which they are printed.
fn variables(settings: &Settings, args: &EnvArgs) -> Result<Vec<(&'static str, String)>, ApiError> {
    let login = match Login::asked(args) {
        None => Login::of_dev(settings.dev_nats_url().as_deref().ok_or_else(nobody)?, settings.dev_http_url())?,
        Some(who) => {
            let access = nats_config::read(&args.access)?;
            let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            Login::of_access(&access, &args.access, who, &variable)?
        }
    };
    let server = args.server.clone().or_else(|| settings.nats_url_if_set().map(|url| dev_folder::public(&url)));
    Ok(login.variables(server.as_deref().unwrap_or(SERVER)))
}

fn nobody() -> ApiError {
    let message = "no `redial dev` runs in this folder; start one, or say whom the access file names: --user TENANT.USER, \
                   --worker NAME, --dispatcher or --gateway";
    ApiError::new(Code::InvalidConfiguration, message)
}
