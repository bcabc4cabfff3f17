//! `redial health`: checks that NATS, JetStream, a dispatcher and, if they are known, Postgres and a gateway answer, and that
//! jobs are published.

mod gateway;

use std::{process::ExitCode, time::Duration};

use redial_queue::{Queue, QueueError};

use crate::{connect, exit, output, settings::Settings};

/// Longest wait for a server's answer.
const LIMIT: Duration = Duration::from_secs(5);

enum Verdict {
    Ok,
    /// Who asks may not: that says nothing about the part.
    Skipped(String),
    /// It does not answer, or says that something is wrong.
    Failed(String),
}

type Check = (&'static str, Verdict);

pub(crate) async fn run(settings: &Settings, gateway: Option<&str>) -> anyhow::Result<ExitCode> {
    if let Some(address) = gateway {
        return told(settings, vec![("gateway", from_trouble(gateway::trouble(address, LIMIT).await?))]);
    }
    let mut checks = Vec::new();
    match connect::queue_within(settings, LIMIT).await {
        Ok(queue) => {
            checks.push(("nats", Verdict::Ok));
            checks.push(("jetstream", jetstream(&queue).await));
            checks.push(("dispatcher", dispatcher(&queue).await));
        }
        Err(error) => {
            // A wrong or missing setting is a usage error; what cannot be reached is a result.
            if !exit::is_unavailable(&error) {
                return Err(error);
            }
            checks.push(("nats", Verdict::Failed(format!("{error:#}"))));
            checks.push(("dispatcher", Verdict::Failed("cannot be asked without NATS".to_owned())));
        }
    }
    if let Some(url) = settings.database_url_if_set() {
        let ping = async { anyhow::Ok(redial_store::admin::ping(&url).await?) };
        match tokio::time::timeout(LIMIT, ping).await {
            Ok(Err(error)) if !exit::is_unavailable(&error) => return Err(error),
            Ok(Ok(())) => checks.push(("postgres", Verdict::Ok)),
            Ok(Err(error)) => checks.push(("postgres", Verdict::Failed(error.to_string()))),
            Err(_) => checks.push(("postgres", Verdict::Failed(format!("no answer within {LIMIT:?}")))),
        }
    }
    if let Some(address) = settings.dev_http_url() {
        checks.push(("gateway", from_trouble(gateway::trouble(address, LIMIT).await?)));
    }
    told(settings, checks)
}

async fn jetstream(queue: &Queue) -> Verdict {
    queue.jetstream().await.map_or_else(of_queue, |()| Verdict::Ok)
}

async fn dispatcher(queue: &Queue) -> Verdict {
    match connect::dispatcher_health(queue).await {
        Ok(health) => from_trouble(health.trouble()),
        Err(error) => of_queue(error),
    }
}

fn from_trouble(trouble: Option<String>) -> Verdict {
    trouble.map_or(Verdict::Ok, Verdict::Failed)
}

fn told(settings: &Settings, checks: Vec<Check>) -> anyhow::Result<ExitCode> {
    let healthy = checks.iter().all(|(_, verdict)| !matches!(verdict, Verdict::Failed(_)));
    let told = checks.into_iter().map(|(name, verdict)| match verdict {
        Verdict::Ok => (name, "ok".to_owned()),
        Verdict::Skipped(why) => (name, format!("skipped: {why}")),
        Verdict::Failed(why) => (name, why),
    });
    if settings.json() {
        let checks: serde_json::Map<_, _> = told.map(|(name, verdict)| (name.to_owned(), verdict.into())).collect();
        output::json(&serde_json::json!({ "healthy": healthy, "checks": checks }))?;
    } else {
        for (name, verdict) in told {
            output::line(format!("{name}: {verdict}"))?;
        }
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn of_queue(error: QueueError) -> Verdict {
    match error {
        QueueError::Forbidden { .. } => Verdict::Skipped(error.to_string()),
        error => Verdict::Failed(connect::user_error(error).message),
    }
}
