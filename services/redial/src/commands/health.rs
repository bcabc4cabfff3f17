//! `redial health`: checks that NATS, a dispatcher and, if they are known, Postgres and a gateway answer.

mod gateway;

use std::{process::ExitCode, time::Duration};

use crate::{connect, exit, output, settings::Settings};

/// Longest wait for a server's answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Begins the verdict about what could not be checked.
const NOT_ASKED: &str = "unknown";

pub(crate) async fn run(settings: &Settings, gateway: Option<&str>) -> anyhow::Result<ExitCode> {
    if let Some(address) = gateway {
        return told(settings, vec![("gateway", gateway::verdict(address, LIMIT).await?)]);
    }
    let mut checks = Vec::new();
    match connect::queue_within(settings, LIMIT).await {
        Ok(queue) => {
            let nats = async { anyhow::Ok(queue.health().await?) };
            checks.push(("nats", verdict(tokio::time::timeout(LIMIT, nats).await)));
            checks.push(("dispatcher", dispatcher(&queue).await));
        }
        Err(error) => {
            // A wrong or missing setting is a usage error; what cannot be reached is a result.
            if !exit::is_unavailable(&error) {
                return Err(error);
            }
            checks.push(("nats", format!("{error:#}")));
            checks.push(("dispatcher", "cannot be asked without NATS".to_owned()));
        }
    }
    if let Some(url) = settings.database_url_if_set() {
        let ping = async { anyhow::Ok(redial_store::admin::ping(&url).await?) };
        match tokio::time::timeout(LIMIT, ping).await {
            Ok(Err(error)) if !exit::is_unavailable(&error) => return Err(error),
            done => checks.push(("postgres", verdict(done))),
        }
    }
    if let Some(address) = settings.dev_http_url() {
        checks.push(("gateway", gateway::verdict(address, LIMIT).await?));
    }
    told(settings, checks)
}

fn told(settings: &Settings, checks: Vec<(&'static str, String)>) -> anyhow::Result<ExitCode> {
    // A user who may not send requests cannot ask a dispatcher, which says nothing about it.
    let healthy = checks.iter().all(|(_, verdict)| verdict == "ok" || verdict.starts_with(NOT_ASKED));
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

async fn dispatcher(queue: &redial_queue::Queue) -> String {
    match connect::dispatcher_answers(queue).await {
        Ok(true) => "ok".to_owned(),
        Ok(false) => connect::NO_DISPATCHER.to_owned(),
        Err(error) => format!("{NOT_ASKED}: {}", connect::user_error(error).message),
    }
}

fn verdict(done: Result<anyhow::Result<()>, tokio::time::error::Elapsed>) -> String {
    match done {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {LIMIT:?}"),
    }
}
