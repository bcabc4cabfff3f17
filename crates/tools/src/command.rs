//! Tools that are a program: arguments on standard input, result on standard output.

mod argument;
mod classify;
mod confine;
mod killer;
mod launch;
mod output;
mod process;
mod setpriv;
mod tree;
mod user;

use std::{collections::BTreeMap, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::Failure;
use serde_json::value::RawValue;
use tokio::{io::AsyncWriteExt, process::ChildStdin, time::timeout};

use crate::{
    context::Context,
    handler::{Handler, ToolResult},
    template::{RefusedValue, Template, Values},
};

pub use killer::wait_for_kills;
pub use user::{Account, CommandUser};

pub(crate) use argument::CommandArgument;
pub(crate) use classify::{ExitRule, FailureRules};

/// Variables that every program inherits from the worker; all others must be declared.
pub(crate) const PASSED_ON: [&str; 3] = ["HOME", "LANG", "TZ"];
/// Where programs are searched, and their `PATH`: whoever starts a worker cannot slip another program in by its own.
pub(crate) const SEARCHED: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long processes that a program left behind may hold its output open before they are killed.
const LINGER: Duration = Duration::from_millis(250);

/// A tool that runs a program.
#[derive(Debug)]
pub(crate) struct CommandTool {
    /// A name that is searched in `PATH`, or a path relative to the folder.
    pub(crate) program: String,
    pub(crate) arguments: Vec<CommandArgument>,
    /// The working directory.
    pub(crate) folder: PathBuf,
    /// Variables of the worker's environment when the manifest was loaded.
    pub(crate) inherited: BTreeMap<String, String>,
    pub(crate) environment: Vec<(String, Template)>,
    /// What its failures mean, and what of them a model may read.
    pub(crate) failures: FailureRules,
    /// The user that it runs as, unless it is the worker's.
    pub(crate) account: Option<Account>,
}

impl Handler for Arc<CommandTool> {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let tool = Arc::clone(self);
        async move { tool.attempt(&context, &arguments).await }.boxed()
    }
}

impl CommandTool {
    /// Says that the program is not there, as far as that is known before a call: its `PATH` may come from arguments.
    pub(crate) fn missing_program(&self) -> Option<String> {
        if self.environment.iter().any(|(name, _)| name == "PATH") && !self.program.contains('/') {
            return None;
        }
        launch::find(&self.program, &self.folder, &self.inherited).err().map(|failure| failure.message)
    }

    /// Runs the program. Dropping the future at any point kills the whole process tree.
    async fn attempt(&self, context: &Context, arguments: &RawValue) -> ToolResult {
        let secrets = &context.secrets;
        let mut tree = launch::launch(self.program(context, arguments)?).await?;
        let (stdin, stdout, stderr) = tree.pipes();
        let mut pipes = pin!(async {
            let tail = async { Ok(output::read_tail(stderr, secrets).await) };
            let ((), stdout, stderr) =
                tokio::try_join!(feed(stdin, arguments.get()), output::read(stdout, context), tail)?;
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
        // What fails is quoted in part, so secrets are removed before.
        let stdout = if status.success() { stdout } else { secrets.redact_bytes(&stdout) };
        classify::ended(status, &stdout, &stderr, &self.failures)
    }

    fn program(&self, context: &Context, arguments: &RawValue) -> Result<launch::Program, Failure> {
        let values = Values::new(context, arguments)?;
        let fill = |template: &Template| fill(template, &values).map_err(|refused| values.failure(refused));
        let argument = |argument: &CommandArgument| {
            let text = fill(&argument.template)?;
            argument.check(&text).map_err(|refused| values.failure(refused))?;
            Ok::<_, Failure>(text)
        };
        let environment = self.environment.iter().map(|(name, value)| Ok((name.clone(), fill(value)?)));
        let mut all: BTreeMap<String, String> = self.inherited.clone();
        all.extend(environment.collect::<Result<Vec<_>, Failure>>()?);
        all.insert("REDIAL_CALL".to_owned(), context.call.to_string());
        all.insert(killer::MARKER.to_owned(), format!("{}.{}", context.call, context.attempt));
        all.insert("REDIAL_IDEMPOTENCY_KEY".to_owned(), context.idempotency_key.clone());
        all.insert("REDIAL_TENANT".to_owned(), context.tenant.clone());
        all.extend(context.conversation.clone().map(|id| ("REDIAL_CONVERSATION".to_owned(), id)));
        all.extend(context.task.map(|task| ("REDIAL_TASK".to_owned(), task.to_string())));
        all.extend(context.traceparent.clone().map(|trace| ("TRACEPARENT".to_owned(), trace)));
        Ok(launch::Program {
            name: self.program.clone(),
            arguments: self.arguments.iter().map(argument).collect::<Result<_, _>>()?,
            environment: all,
            folder: self.folder.clone(),
            account: self.account.clone(),
        })
    }
}

/// Fills a template; refuses NUL, which would end a program argument or a variable.
fn fill(template: &Template, values: &Values<'_>) -> Result<String, RefusedValue> {
    let text = template.fill_required(values)?;
    if text.contains('\0') { Err(template.refuse("nul", "text without U+0000")) } else { Ok(text) }
}

/// Writes the arguments. A program that does not read its input may close the pipe.
async fn feed(stdin: Option<ChildStdin>, text: &str) -> Result<(), Failure> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(text.as_bytes()).await;
    }
    Ok(())
}
