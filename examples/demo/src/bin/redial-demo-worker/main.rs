//! A worker as a user would write it: tools are functions, one file each, and `main` runs them.

mod book_flight;
mod charge_card;
mod ledger;
mod master_haiku_generator;
mod refresh_prices;

use std::{io::IsTerminal, path::PathBuf};

use clap::Parser;
use redial_worker::{CancellationToken, Tool, Worker, WorkerConfig};
use tokio::signal::unix::{SignalKind, signal};

use crate::ledger::Ledger;

/// Workers of one pool should have the same tools; those of the pool `default` have the manifest's.
const POOL: &str = "demo";

/// The worker with the demo's native tools.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Address of NATS
    #[arg(long, env = "REDIAL_NATS_URL", hide_env_values = true)]
    nats_url: String,
    /// First part of the worker's id
    #[arg(long, default_value = "demo")]
    name: String,
    /// Folder for the ledgers of the airline and the bank
    #[arg(long, default_value = ".")]
    ledgers: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Before anything else: programs of the same user could read the password of NATS otherwise.
    redial_worker::protect_process()?;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).init();
    let Args { nats_url, name, ledgers } = Args::parse();
    let airline = Ledger::new(ledgers.join("airline.jsonl"), &name);
    let bank = Ledger::new(ledgers.join("bank.jsonl"), &name);
    let tools: [Tool; 4] =
        [book_flight::tool(airline), charge_card::tool(bank), master_haiku_generator::tool(), refresh_prices::tool()];
    let worker = Worker::new(WorkerConfig::new(nats_url, name));
    let worker = tools.into_iter().map(|tool| tool.pool(POOL)).fold(worker, Worker::add);
    Ok(worker.run(stop_signal()?).await?)
}

/// Returns a token that Ctrl-C or SIGTERM cancels: the worker then finishes its running calls and takes no new ones.
fn stop_signal() -> anyhow::Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    });
    Ok(token)
}
