//! `redial redrive`.

use crate::settings::Settings;

pub(crate) async fn run(settings: &Settings, args: crate::cli::RedriveArgs) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not there yet")
}
