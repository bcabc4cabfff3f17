//! `redial health`: checks that NATS answers and, if a database is configured, that Postgres does.

use std::{process::ExitCode, time::Duration};

use crate::{connect, exit, output, settings::Settings};

/// Longest wait for a server's answer.
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let nats = tokio::time::timeout(LIMIT, async { anyhow::Ok(connect::queue(settings).await?.health().await?) }).await;
    let mut checks = vec![("nats", verdict(nats))];
    if let Some(url) = settings.database_url_if_set() {
        let ping = async { anyhow::Ok(redial_store::admin::ping(&url).await?) };
        checks.push(("postgres", verdict(tokio::time::timeout(LIMIT, ping).await)));
    }
    let healthy = checks.iter().all(|(_, verdict)| verdict == "ok");
    if settings.json() {
        let checks: serde_json::Map<_, _> = checks.into_iter().map(|(name, v)| (name.to_owned(), v.into())).collect();
        output::json(&serde_json::json!({ "healthy": healthy, "checks": checks }))?;
    } else {
        for (name, verdict) in checks {
            output::line(format!("{name}: {verdict}"))?;
        }
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn verdict(done: Result<anyhow::Result<()>, tokio::time::error::Elapsed>) -> String {
    match done {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => format!("no answer within {LIMIT:?}"),
    }
}
