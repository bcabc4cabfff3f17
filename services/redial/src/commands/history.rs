//! `redial history`.

use crate::settings::Settings;

pub(crate) async fn run(settings: &Settings, args: crate::cli::HistoryArgs) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not there yet")
}
