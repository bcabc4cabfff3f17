//! A worker as you would write it: tools are functions, and `main` says how to run them.

mod airline;
mod book_flight;
mod refresh_prices;

use std::{io::IsTerminal, path::PathBuf};

use clap::Parser;
use redial_worker::{CancellationToken, Worker, WorkerConfig};
use tokio::signal::unix::{SignalKind, signal};

use crate::airline::Airline;

/// Workers of one pool should have the same tools; the pool `default` belongs to those with the manifest's.
const POOL: &str = "flights";

/// The demo's worker: the tools `book_flight` and `refresh_prices`.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// Where NATS is
    #[arg(long, env = "REDIAL_NATS_URL", hide_env_values = true)]
    nats_url: String,
    /// Readable part of the worker's id
    #[arg(long, default_value = "demo")]
    name: String,
    /// File in which the airline notes every request
    #[arg(long, default_value = "airline.jsonl")]
    airline: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).init();
    let arguments = Arguments::parse();
    let airline = Airline::new(arguments.airline, &arguments.name);
    let worker = Worker::new(WorkerConfig::new(arguments.nats_url, arguments.name))
        .add(book_flight::tool(airline))
        .add(refresh_prices::tool());
    Ok(worker.run(stopped()?).await?)
}

/// Cancelled by Ctrl-C or SIGTERM: the worker then finishes what it runs, and takes nothing new.
fn stopped() -> anyhow::Result<CancellationToken> {
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
