//! `redial cancel`.

use crate::settings::Settings;

pub(crate) async fn run(settings: &Settings, call: redial_proto::CallId) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not there yet")
}
