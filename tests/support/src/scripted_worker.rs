//! A worker with scripted tools, as a process of its own.

use std::{path::Path, time::Duration};

use redial_proto::ToolEffect;
use redial_telemetry::TelemetryConfig;
use redial_testkit::{Ledger, Process, scripted_tool};
use redial_worker::{CancellationToken, Worker, WorkerConfig};

const NATS: &str = "OBEDIENT_WORKER_NATS";
const LEDGER: &str = "OBEDIENT_WORKER_LEDGER";
const GRACE: &str = "OBEDIENT_WORKER_GRACE_MS";
const SLOTS: u32 = 16;

/// An ignored test named `scripted_worker` must call this, so that [`start_scripted_worker`] can run it as a process of
/// its own: a worker with a scripted tool of each effect, named after it. Logs warnings. Drains on SIGTERM. Started otherwise
/// (by `cargo test -- --ignored`) it does nothing.
pub async fn run_scripted_worker() {
    let (Ok(nats), Ok(ledger)) = (std::env::var(NATS), std::env::var(LEDGER)) else { return };
    let logs = TelemetryConfig { filter: "warn".to_owned(), ..TelemetryConfig::new("scripted-worker", "scripted") };
    let telemetry = redial_telemetry::init(&logs).unwrap();
    let ledger = Ledger::open(Path::new(&ledger));
    let grace = std::env::var(GRACE).unwrap().parse().unwrap();
    let config =
        WorkerConfig { slots: SLOTS, drain_grace: Duration::from_millis(grace), ..WorkerConfig::new(nats, "scripted") };
    let tools = ToolEffect::ALL.map(|effect| scripted_tool(effect.as_str(), effect, &ledger));
    let worker = tools.into_iter().fold(Worker::new(config), Worker::add);
    let shutdown = CancellationToken::new();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let cancel = shutdown.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        cancel.cancel();
    });
    worker.run(shutdown).await.unwrap();
    telemetry.shutdown().await;
}

/// Starts this test program as a worker; see [`run_scripted_worker`].
pub fn start_scripted_worker(nats_url: &str, ledger: &Ledger, grace: Duration) -> Process {
    Process::start(std::env::current_exe().unwrap(), |command| {
        command.args(["scripted_worker", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(NATS, nats_url).env(LEDGER, ledger.path()).env(GRACE, grace.as_millis().to_string());
    })
}
