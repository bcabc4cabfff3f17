//! A worker as you would write it: tools are functions, one file each, and `main` says how to run them.

mod airline;
mod book_flight;
mod get_weather;
mod ledger;
mod list_tables;
mod master_haiku_generator;
mod orders;
mod refresh_prices;
mod search_flights;
mod warehouse;

use std::{io::IsTerminal, path::PathBuf};

use clap::Parser;
use redial_worker::{CancellationToken, Worker, WorkerConfig};
use tokio::signal::unix::{SignalKind, signal};

use crate::{airline::Airline, warehouse::Warehouse};

/// Workers of one pool should have the same tools; the pool `default` belongs to those with the manifest's.
const POOL: &str = "demo";

/// The demo's worker: its tools that are written in Rust.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// Where NATS is
    #[arg(long, env = "REDIAL_NATS_URL", hide_env_values = true)]
    nats_url: String,
    /// Readable part of the worker's id
    #[arg(long, default_value = "demo")]
    name: String,
    /// Folder in which the airline and the warehouse keep their books
    #[arg(long, default_value = ".")]
    books: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).init();
    let Arguments { nats_url, name, books } = Arguments::parse();
    let airline = Airline::new(books.join("airline.jsonl"), &name);
    let warehouse = Warehouse::new(&books, &name);
    let worker = Worker::new(WorkerConfig::new(nats_url, name))
        .add(book_flight::tool(airline))
        .add(get_weather::tool())
        .add(list_tables::tool())
        .add(master_haiku_generator::tool())
        .add(orders::place_order(warehouse.clone()))
        .add(orders::send_receipt(warehouse))
        .add(refresh_prices::tool())
        .add(search_flights::tool());
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
