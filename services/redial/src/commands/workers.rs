//! `redial workers`.

use crate::settings::Settings;

pub(crate) async fn run(settings: &Settings, all: bool) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not there yet")
}
