//! A worker with a tool that takes a second and does nothing: the case of slow tools.

use std::{process::ExitCode, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{Effect, ToolSpec};
use redial_worker::{Answer, Context, Handler, Tool, Worker};
use serde_json::value::RawValue;

use crate::{
    commands::shutdown,
    settings::{Settings, WorkerFlags},
};

/// The tool's name.
pub(super) const SLEEP: &str = "bench_sleep";
/// What it takes.
pub(super) const TAKES: Duration = Duration::from_secs(1);

struct Sleep;

impl Handler for Sleep {
    fn run(&self, _context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, Answer> {
        async {
            tokio::time::sleep(TAKES).await;
            Ok(arguments)
        }
        .boxed()
    }
}

/// `redial bench-worker`: started by `redial bench` itself.
pub(crate) async fn run(settings: &Settings, flags: &WorkerFlags) -> anyhow::Result<ExitCode> {
    let config = settings.worker(flags, settings.queue("redial-worker")?)?;
    let tool = Tool::from_handler(ToolSpec::named(SLEEP), Sleep).effect(Effect::Read).pool("bench");
    Worker::new(config).add(tool).run(shutdown()?).await?;
    Ok(ExitCode::SUCCESS)
}
