//! `redial tools`.

use crate::settings::Settings;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not there yet")
}
