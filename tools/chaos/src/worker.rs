//! A worker of the run: scripted tools of all four effects, and a model played by a script.

use std::io::Write as _;

use redial_testkit::{Ledger, scripted_tool};
use redial_worker::{CancellationToken, Tool, Worker, WorkerConfig};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    access::Login,
    cli::{ToolSet, WorkerArgs},
    load,
};

/// Calls that each pool runs at once.
const SLOTS: u32 = 64;
/// What the line begins with that says the worker's id.
pub(crate) const ID: &str = "worker-id ";

/// Runs until SIGTERM, then drains.
pub(crate) async fn run(args: &WorkerArgs) -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let ledger = Ledger::open(&args.ledger);
    let (identity, pool) = args.tools.identity();
    let mut config = WorkerConfig { slots: SLOTS, pools: vec![pool.to_owned()], ..WorkerConfig::new("", identity) };
    let login = Login::worker(identity);
    (config.nats.url, config.nats.inbox_prefix) = (login.url(&args.nats_url), Some(login.inbox));
    let worker = tools(args, &ledger).into_iter().fold(Worker::new(config), Worker::add);
    let worker = if args.tools == ToolSet::Models { worker.models(&args.models)? } else { worker };
    writeln!(std::io::stdout(), "{ID}{}", worker.id())?;
    let shutdown = CancellationToken::new();
    let (cancel, mut terminate) = (shutdown.clone(), signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        terminate.recv().await;
        cancel.cancel();
    });
    Ok(worker.run(shutdown).await?)
}

fn tools(args: &WorkerArgs, ledger: &Ledger) -> Vec<Tool> {
    let mut named = if args.tools == ToolSet::Models { Vec::new() } else { load::tools() };
    named.retain(|(name, _)| args.tools == ToolSet::Whole || name != load::OPTIONAL);
    named.iter().map(|(name, effect)| scripted_tool(name, *effect, ledger)).collect()
}
