//! One command, one file.

mod call;
mod cancel;
mod check;
mod completions;
mod dead_letters;
mod dev;
mod health;
mod history;
mod migrate;
mod redrive;
mod replay;
mod roles;
mod show;
mod story;
mod submit;
mod task;
mod tasks;
mod tools;
mod watch;
mod workers;

use std::{process::ExitCode, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use redial_queue::{Queue, QueueError};
use redial_store::{Purpose, Store, StoreConfig, audit::Filter};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Command, FilterArgs},
    settings::Settings,
};

/// Runs a command.
pub(crate) async fn run(command: Command, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (service, filter) = match &command {
        Command::Dev(_) => ("redial-dev", "info"),
        Command::Dispatcher(_) => ("redial-dispatcher", "info"),
        Command::Worker(_) => ("redial-worker", "info"),
        _ => ("redial-cli", "warn"),
    };
    let telemetry = settings.telemetry(service, filter)?;
    let done = match command {
        Command::Dev(args) => Box::pin(dev::run(settings, &args)).await,
        Command::Dispatcher(flags) => roles::dispatcher(settings, &flags).await,
        Command::Worker(flags) => roles::worker(settings, &flags).await,
        Command::Migrate => migrate::run(settings).await,
        Command::Health => health::run(settings).await,
        Command::Call(args) => call::run(settings, args).await,
        Command::Submit(args) => submit::run(settings, &args).await,
        Command::History(args) => history::run(settings, args).await,
        Command::Task(args) => task::run(settings, args).await,
        Command::Watch { task } => watch::run(settings, task).await,
        Command::Tasks(args) => tasks::run(settings, args).await,
        Command::Show { id, mermaid } => show::run(settings, id, mermaid).await,
        Command::Replay(args) => replay::run(settings, &args).await,
        Command::Tools => tools::run(settings).await,
        Command::Workers { all } => workers::run(settings, all).await,
        Command::DeadLetters { limit } => dead_letters::run(settings, limit).await,
        Command::Cancel { id } => cancel::run(settings, id).await,
        Command::Check(args) => check::run(settings, &args),
        Command::Redrive(args) => redrive::run(settings, args).await,
        Command::Completions { shell } => completions::run(shell),
    };
    telemetry.shutdown().await;
    done
}

/// How long a command waits for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a command waits for the answer to one request.
const REQUEST: Duration = Duration::from_secs(10);

/// NATS, for a command: fails instead of waiting for ever.
async fn queue(settings: &Settings) -> anyhow::Result<Queue> {
    let config = settings.queue("redial-cli")?;
    let address = config.address();
    match tokio::time::timeout(PATIENCE, Queue::connect(&config)).await {
        Ok(queue) => Ok(queue?),
        Err(_) => Err(unreachable("NATS", &address)),
    }
}

/// Postgres, for people's questions.
async fn store(settings: &Settings) -> anyhow::Result<Store> {
    let url = settings.database_url()?;
    let address = url.rsplit_once('@').map_or(url.as_str(), |(_, address)| address).to_owned();
    let config = StoreConfig { url, connections: 2, purpose: Purpose::Audit };
    match tokio::time::timeout(PATIENCE, Store::connect(&config)).await {
        Ok(store) => Ok(store?),
        Err(_) => Err(unreachable("Postgres", &address)),
    }
}

fn unreachable(server: &str, address: &str) -> anyhow::Error {
    let message = format!("{server} does not answer at {address}; is it running? `redial dev` starts everything here");
    redial_proto::ApiError::new(redial_proto::Code::Unavailable, message).into()
}

/// Neither a task nor a call has this id.
fn nothing(id: uuid::Uuid) -> anyhow::Error {
    let message = format!("no task and no call {id} is on record");
    redial_proto::ApiError::new(redial_proto::Code::CallNotFound, message).into()
}

/// Errors of requests as users get them.
fn api(error: QueueError) -> anyhow::Error {
    error.into_api().into()
}

/// A token that is cancelled by Ctrl-C or SIGTERM.
fn shutdown() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let token = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    });
    Ok(token)
}

impl From<FilterArgs> for Filter {
    fn from(args: FilterArgs) -> Self {
        let FilterArgs { tool, state, class, since, conversation, key, tenant } = args;
        Self { tool, state, class, since, conversation, key, tenant, task: None, before: None }
    }
}

/// `2h` ago, a date, or a point in time.
pub(crate) fn since(text: &str) -> Result<DateTime<Utc>, String> {
    if let Some(ago) = crate::settings::duration(text) {
        return Ok(Utc::now() - ago);
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(chrono::NaiveTime::MIN).and_utc());
    }
    text.parse().map_err(|_| "allowed: 30m, 2h, 3days, 2026-11-20, 2026-11-20T08:00:00Z".to_owned())
}
