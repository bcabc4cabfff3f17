//! Tools that are a program: arguments on standard input, result on standard output.

mod classify;
mod launch;
mod output;
mod process;
mod reaper;
mod tree;

use std::{collections::BTreeMap, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::Failure;
use serde_json::value::RawValue;
use tokio::{io::AsyncWriteExt, process::ChildStdin, time::timeout};

use crate::{
    Answer, Context, Handler,
    secrets::Secrets,
    template::{Refused, Template, Values},
};

pub use reaper::settled;

/// Part of every program's environment if the worker has it; everything else must be declared.
pub(crate) const PASSED_ON: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// How long what a program left behind may hold its output open before it is killed.
const LINGER: Duration = Duration::from_millis(250);

/// One program, from its template.
#[derive(Debug)]
pub(crate) struct CommandTool {
    /// A name to be found in `PATH`, or a path, relative to the folder.
    pub(crate) program: String,
    pub(crate) arguments: Vec<Template>,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    /// Taken from the worker's environment when the manifest was loaded.
    pub(crate) inherited: BTreeMap<String, String>,
    pub(crate) environment: Vec<(String, Template)>,
    pub(crate) secrets: Secrets,
}

impl Handler for Arc<CommandTool> {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, Answer> {
        let tool = Arc::clone(self);
        async move {
            let answer = tool.attempt(&context, &arguments).await;
            let answer = answer.and_then(|output| tool.secrets.redact_output(output));
            answer.map_err(|failure| tool.secrets.redact_failure(failure))
        }
        .boxed()
    }
}

impl CommandTool {
    /// Dropped at any point, this kills the whole tree.
    async fn attempt(&self, context: &Context, arguments: &RawValue) -> Answer {
        let mut tree = launch::launch(self.program(context, arguments)?).await?;
        let (stdin, stdout, stderr) = tree.pipes();
        let mut pipes = pin!(async {
            let tail = async { Ok(output::read_tail(stderr, &self.secrets).await) };
            let ((), stdout, stderr) = tokio::try_join!(feed(stdin, arguments.get()), output::read(stdout), tail)?;
            Ok::<_, Failure>((stdout, stderr))
        });
        let mut closed = tokio::select! {
            closed = &mut pipes => Some(closed?),
            _ = tree.exited() => None,
        };
        let status = tree.exited().await.map_err(|error| classify::wait_error(&error))?;
        if closed.is_none() {
            closed = timeout(LINGER, &mut pipes).await.ok().transpose()?;
        }
        let (stdout, stderr) = if let Some(closed) = closed {
            closed
        } else {
            tree.kill_leftovers();
            pipes.await?
        };
        classify::ended(status, &stdout, &stderr)
    }

    fn program(&self, context: &Context, arguments: &RawValue) -> Result<launch::Program, Failure> {
        let values = Values::new(context, arguments)?;
        let fill = |template: &Template| fill(template, &values).map_err(|refused| values.failure(refused));
        let environment = self.environment.iter().map(|(name, value)| Ok((name.clone(), fill(value)?)));
        let mut all: BTreeMap<String, String> = self.inherited.clone();
        all.extend(environment.collect::<Result<Vec<_>, Failure>>()?);
        all.insert("REDIAL_CALL".to_owned(), context.call.to_string());
        all.insert(reaper::COOKIE.to_owned(), format!("{}.{}", context.call, context.attempt));
        all.insert("REDIAL_IDEMPOTENCY_KEY".to_owned(), context.idempotency_key.clone());
        all.extend(context.conversation.clone().map(|id| ("REDIAL_CONVERSATION".to_owned(), id)));
        all.extend(context.task.map(|task| ("REDIAL_TASK".to_owned(), task.to_string())));
        all.extend(context.traceparent.clone().map(|trace| ("TRACEPARENT".to_owned(), trace)));
        Ok(launch::Program {
            name: self.program.clone(),
            arguments: self.arguments.iter().map(fill).collect::<Result<_, _>>()?,
            environment: all,
            folder: self.folder.clone(),
        })
    }
}

/// Program arguments and environments end at the first NUL.
fn fill(template: &Template, values: &Values<'_>) -> Result<String, Refused> {
    let text = template.fill_certain(values)?;
    if text.contains('\0') { Err(template.refuse("nul", "text without U+0000")) } else { Ok(text) }
}

/// A program that does not read its input closes the pipe; that is its right.
async fn feed(stdin: Option<ChildStdin>, text: &str) -> Result<(), Failure> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(text.as_bytes()).await;
    }
    Ok(())
}
