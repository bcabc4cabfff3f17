//! `redial settings`: the settings that every command has.

use std::process::ExitCode;

use crate::{help, output, settings::Settings};

pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    if settings.json() {
        help::common_settings().iter().try_for_each(output::json)?;
    } else {
        output::line(help::settings_text())?;
    }
    Ok(ExitCode::SUCCESS)
}
