//! `redial dispatcher`, `redial worker` and `redial gateway`.

use std::process::ExitCode;

use redial_proto::webhook;
use redial_worker::{Allowed, WebhookKey, Worker, WorkerConfig};
use tokio_util::sync::CancellationToken;

use crate::{
    commands::start_files,
    connect::{STOPPING, STOPPING_GATEWAY, STOPPING_WORKER, shutdown_sooner_if_repeated},
    settings::{Settings, variable},
};

pub(crate) async fn dispatcher(settings: &Settings) -> anyhow::Result<ExitCode> {
    start_files::check_dispatcher(settings)?;
    let config = settings.dispatcher(settings.queue("redial-dispatcher")?, settings.database_url()?)?;
    redial_dispatcher::run(config, shutdown_sooner_if_repeated(STOPPING, None)?, || {}).await?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn worker(settings: &Settings) -> anyhow::Result<ExitCode> {
    start_files::check_worker(settings)?;
    let config = settings.worker(settings.queue("redial-worker")?)?;
    let allowed = settings.webhook_allow()?.unwrap_or_default();
    let built_in = BuiltIn { webhooks: Settings::webhook_key()?.map(|key| (key, allowed)) };
    let shutdown = shutdown_sooner_if_repeated(STOPPING_WORKER, Some(config.kill.clone()))?;
    run_worker(settings, (config, built_in), shutdown, || ()).await?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn gateway(settings: &Settings) -> anyhow::Result<ExitCode> {
    start_files::check_gateway(settings)?;
    let config = settings.gateway(settings.queue("redial-gateway")?, settings.database_url()?)?;
    redial_gateway::run(config, shutdown_sooner_if_repeated(STOPPING_GATEWAY, None)?, |_| {}).await?;
    Ok(ExitCode::SUCCESS)
}

const ECHO: &str = "echo";

/// What a worker needs for the built-in tools.
pub(crate) struct BuiltIn {
    /// The key of webhooks, and where they may be delivered besides the public internet; without it none are delivered.
    pub(crate) webhooks: Option<(WebhookKey, Allowed)>,
}

/// Runs a worker with the manifest's tools, the models, and the built-in tools `echo` and `redial_webhook`. `echo` has
/// its own pool, so that a worker without other tools pulls no job that it cannot run. Credentials for other pools only
/// are for neither.
pub(crate) async fn run_worker(
    settings: &Settings,
    (config, built_in): (WorkerConfig, BuiltIn),
    shutdown: CancellationToken,
    ready: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    let has = |pool: &str| config.pools.is_empty() || config.pools.iter().any(|one| one == pool);
    let (has_echo, has_webhooks) = (has(ECHO), has(webhook::POOL));
    let (manifest, models) = (settings.manifest(), settings.models(&config.pools));
    let mut worker = Worker::new(config).on_ready(ready);
    if has_echo {
        worker = worker.add(redial_tools::Tool::echo().pool(ECHO));
    }
    if let Some((key, allowed)) = built_in.webhooks.filter(|_| has_webhooks) {
        worker = worker.webhooks(key, allowed)?;
    }
    if let Some(file) = settings.models(&[]).filter(|_| models.is_none()) {
        let file = file.display();
        tracing::debug!(%file, "Left a file of models alone: the pools of this worker lack models");
    }
    if manifest.is_none() && models.is_none() {
        tracing::info!("This worker has only built-in tools: it uses no tools.toml and no models.toml");
    }
    if let Some(manifest) = manifest {
        worker = worker.manifest_with(manifest, &variable)?;
    }
    if let Some(models) = models {
        worker = worker.models_with(models, &variable)?;
    }
    Ok(worker.run(shutdown).await?)
}
