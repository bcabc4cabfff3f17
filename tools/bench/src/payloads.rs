//! `./dev bench payloads`: many of the largest calls at once, and how much memory each process needs for them.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use redial_proto::{CallId, Submission, SubmitResult, subjects::Verb};
use redial_queue::Queue;
use serde_json::value::RawValue;

use crate::{
    cli::PayloadsArgs,
    fleet::{Fleet, Program},
    load::{ECHO, WORKER},
    meter::peak_memory,
    output::{note, println},
    report::table,
    servers::Servers,
};

/// Submissions of this program at once: what it holds of them is no matter of Redial.
const AT_ONCE: usize = 4;
/// How long the answer to a submission may take: it waits for its turn.
const PATIENCE: Duration = Duration::from_mins(5);
/// What is around the text of the arguments.
const AROUND: usize = r#"{"n":"0000000000","text":""}"#.len();

/// See the module.
pub(crate) async fn run(args: &PayloadsArgs) -> anyhow::Result<()> {
    let servers = Servers::start(args.servers.settings()).await?;
    let measured = measure(&servers, args).await;
    servers.stop().await?;
    println(&measured?)?;
    Ok(())
}

async fn measure(servers: &Servers, args: &PayloadsArgs) -> anyhow::Result<String> {
    let database = servers.database().await?;
    let mut fleet = Fleet::start(servers, &database, 1).await?;
    // So that its tool is known.
    fleet.add_workers(1, Program::Redial, &WORKER).await?;
    fleet.stop_workers().await;
    note("without a worker: all of them wait …");
    let (first, began) = (CallId::generate(), Instant::now());
    submit(&servers.queue, args).await?;
    let submitted = began.elapsed();
    note("with a worker …");
    let began = Instant::now();
    fleet.add_workers(1, Program::Redial, &WORKER).await?;
    while database.any_live_call_of(ECHO, first).await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ran = began.elapsed();
    let all = f64::from(args.calls) * f64::from(args.mebibytes);
    let rate = |took: Duration| format!("{:.1} s, {:.0} MiB/s", took.as_secs_f64(), all / took.as_secs_f64());
    let memory = |pid: u32| peak_memory(pid).map_or("unknown".to_owned(), |mib| format!("{mib:.0} MiB"));
    let rows = [
        ("submitted", rate(submitted)),
        ("run, with results of the same size", rate(ran)),
        ("most memory of the dispatcher", memory(fleet.dispatchers[0].pid())),
        ("most memory of the worker", memory(fleet.workers[0].pid())),
        ("pieces that are left", database.pieces().await?.to_string()),
    ];
    fleet.stop().await;
    database.close().await;
    let head = format!("{} calls of {} MiB at once", args.calls, args.mebibytes);
    Ok(table(&[&head, ""], rows.into_iter().map(|(name, value)| vec![name.to_owned(), value])))
}

async fn submit(queue: &Queue, args: &PayloadsArgs) -> anyhow::Result<()> {
    let text = "x".repeat(args.mebibytes as usize * 1024 * 1024 - AROUND);
    let submit = |n: u32| {
        let arguments = format!(r#"{{"n":"{n:010}","text":"{text}"}}"#);
        async move {
            let submission = Submission::new(ECHO, RawValue::from_string(arguments)?);
            let result: SubmitResult = queue.ask(Verb::CallSubmit, &submission, PATIENCE).await?;
            anyhow::ensure!(result.call.is_some(), "{:?}", result.error);
            Ok(())
        }
    };
    stream::iter(0..args.calls).map(submit).buffer_unordered(AT_ONCE).try_collect().await
}
