//! A worker with a tool that takes a second and does nothing, and one whose service is always down.

use std::time::Duration;

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{ErrorClass, Failure, ToolEffect, ToolSpec};
use redial_worker::{CancellationToken, Context, Handler, Tool, ToolResult, Worker, WorkerConfig};
use serde_json::value::RawValue;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::SlowWorkerArgs;

/// The tool's name.
pub(crate) const SLEEP: &str = "bench_sleep";
/// How long the tool takes.
pub(crate) const TAKES: Duration = Duration::from_secs(1);

/// The name of the tool whose service is down.
pub(crate) const DOWN: &str = "bench_down";

struct Sleep;

struct Down;

impl Handler for Down {
    fn run(&self, _context: Context, _arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let failure = Failure::new(ErrorClass::Unavailable, "the service is down").without_effect();
        std::future::ready(Err(failure)).boxed()
    }
}

impl Handler for Sleep {
    fn run(&self, _context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        async {
            tokio::time::sleep(TAKES).await;
            Ok(arguments)
        }
        .boxed()
    }
}

/// Runs until SIGTERM, then drains.
pub(crate) async fn run(args: &SlowWorkerArgs) -> anyhow::Result<()> {
    let config = WorkerConfig { slots: args.slots, ..WorkerConfig::new(&args.nats_url, "bench") };
    let tool = Tool::from_handler(ToolSpec::named(SLEEP), Sleep).effect(ToolEffect::Read).pool("bench");
    let down = Tool::from_handler(ToolSpec::named(DOWN), Down).effect(ToolEffect::Read).pool("bench");
    let shutdown = CancellationToken::new();
    let (cancel, mut terminate) = (shutdown.clone(), signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        terminate.recv().await;
        cancel.cancel();
    });
    Ok(Worker::new(config).add(tool).add(down).run(shutdown).await?)
}
