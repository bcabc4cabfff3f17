//! `redial migrate`.

use std::process::ExitCode;

use crate::{output, settings::Settings};

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let applied = redial_store::admin::migrate(&settings.database_url()?).await?;
    if settings.json() {
        output::json(&serde_json::json!({ "applied": applied }))?;
    } else {
        output::line(match applied {
            0 => "the tables are up to date".to_owned(),
            n => format!("applied {n} migrations"),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}
