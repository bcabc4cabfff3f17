//! `redial rejected`.

use crate::settings::Settings;

pub(crate) async fn run(settings: &Settings, limit: u32) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not there yet")
}
