//! One file for each command.

mod actions;
mod call;
mod cancel;
mod check;
mod completions;
mod dead_letters;
mod dev;
mod env;
mod forget;
mod health;
mod history;
mod migrate;
mod nats_config;
mod redrive;
mod replay;
mod roles;
mod settings;
mod show;
mod start_files;
mod stats;
mod submit;
mod task;
mod tasks;
mod token;
mod tools;
mod version;
mod watch;
mod webhooks;
mod workers;

use std::process::ExitCode;

use crate::{
    cli::{Command, ToolsCommand},
    settings::Settings,
};

pub(crate) async fn run(command: Command, settings: &Settings) -> anyhow::Result<ExitCode> {
    if let Command::Dev(args) = &command {
        // Its log is in its folder, so it starts its logs itself.
        return Box::pin(dev::run(settings, args)).await;
    }
    let telemetry = match &command {
        Command::Dispatcher => settings.telemetry("redial-dispatcher", "info")?,
        Command::Worker => settings.telemetry("redial-worker", "info")?,
        Command::Gateway => settings.telemetry("redial-gateway", "info")?,
        _ => {
            settings.check()?;
            settings.command_telemetry()?
        }
    };
    let done = match command {
        Command::Dev(_) => Ok(ExitCode::SUCCESS),
        Command::Dispatcher => roles::dispatcher(settings).await,
        Command::Worker => roles::worker(settings).await,
        Command::Gateway => roles::gateway(settings).await,
        Command::Migrate => migrate::run(settings).await,
        Command::Health { gateway } => health::run(settings, gateway.as_deref()).await,
        Command::Call(args) => call::run(settings, args).await,
        Command::Submit(args) => submit::run(settings, &args).await,
        Command::History(args) => history::run(settings, *args).await,
        Command::Task(args) => task::run(settings, args).await,
        Command::Watch { task } => watch::run(settings, &task).await,
        Command::Tasks(args) => tasks::run(settings, args).await,
        Command::Actions(args) => actions::run(settings, args).await,
        Command::Stats(args) => stats::run(settings, args).await,
        Command::Show { id, mermaid } => show::run(settings, &id, mermaid).await,
        Command::Replay(args) => replay::run(settings, &args).await,
        Command::Tools { wide, command: None } => tools::run(settings, wide).await,
        Command::Tools { command: Some(ToolsCommand::Accept { tool, identity, fingerprint }), .. } => {
            tools::accept(settings, tool, identity, fingerprint).await
        }
        Command::Tools { command: Some(ToolsCommand::Forget { tool }), .. } => tools::forget(settings, tool).await,
        Command::Webhooks { wide, command } => webhooks::run(settings, wide, command).await,
        Command::Workers { all, wide } => workers::run(settings, all, wide).await,
        Command::DeadLetters { limit, wide } => dead_letters::run(settings, limit, wide).await,
        Command::Cancel { id } => cancel::run(settings, &id).await,
        Command::Check(args) => check::run(settings, &args),
        Command::Redrive(args) => redrive::run(settings, args).await,
        Command::Forget(args) => forget::run(settings, args).await,
        Command::Token { command } => token::run(settings, command).await,
        Command::NatsConfig(args) => nats_config::run(&args),
        Command::Env(args) => env::run(settings, &args),
        Command::Settings => settings::run(settings),
        Command::Version => version::run(settings),
        Command::Completions { shell } => completions::run(shell),
    };
    telemetry.shutdown().await;
    done
}
