//! A tool: its spec and its handler.

use std::{
    any::Any,
    collections::{HashMap, HashSet},
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{
    CallId, ErrorClass, Failure, RetryBudget, RetryPolicy, ToolEffect, ToolSpec, duration, limits, tool::default_pool,
    turn, webhook,
};
use redial_redaction::{Secrets, redact_failure};
use serde_json::value::RawValue;

use crate::{
    context::Context,
    handler::{Handler, ToolResult},
    native::{self, NativeTool},
    output,
};

/// The pool of tools that start programs, unless they name another one.
pub const COMMANDS_POOL: &str = "commands";

/// A tool that a worker can run. Cheap to clone.
///
/// ```
/// use std::time::Duration;
///
/// use redial_proto::ToolEffect;
/// use redial_tools::Tool;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Celsius {
///     degrees: f64,
/// }
///
/// async fn to_fahrenheit(celsius: Celsius) -> f64 {
///     celsius.degrees * 1.8 + 32.0
/// }
///
/// let tool = Tool::new("to_fahrenheit", to_fahrenheit)
///     .describe("Converts a temperature from Celsius to Fahrenheit.")
///     .effect(ToolEffect::Read)
///     .timeout(Duration::from_secs(1));
/// assert_eq!(tool.spec.parameters["required"][0], "degrees");
/// ```
#[derive(Clone)]
pub struct Tool {
    /// What the worker registers.
    pub spec: ToolSpec,
    /// Attempts that one worker runs at the same time in this tool's pool, or, in the pool of models, of this tool alone.
    /// `None` means as many as the worker has permits.
    pub concurrency: Option<u32>,
    /// True for a tool whose attempts each start a program on the worker's machine, as command tools do. Such programs have
    /// a limit of their own in each worker.
    pub starts_programs: bool,
    /// Why calls would fail now although nothing is wrong with the tool; what an operator should read at the start.
    pub warning: Option<String>,
    handler: Arc<dyn Handler>,
    secrets: Secrets,
}

impl Tool {
    /// A tool from an async function `(arguments)` or `(context, arguments)`, whose schema comes from the type of the
    /// arguments. It returns any serialisable value, or a `Result` of one with [`crate::ToolError`].
    ///
    /// The effect is `unsafe` unless [`Tool::effect`] declares another one.
    pub fn new<M: 'static>(name: impl Into<String>, function: impl NativeTool<M>) -> Self {
        let spec = ToolSpec { parameters: native::schema_of(&function), ..ToolSpec::named(name) };
        Self::from_handler(spec, native::handler(function))
    }

    /// A tool from a spec and a handler.
    pub fn from_handler(spec: ToolSpec, handler: impl Handler) -> Self {
        Self {
            spec,
            concurrency: None,
            starts_programs: false,
            warning: None,
            handler: Arc::new(handler),
            secrets: Secrets::default(),
        }
    }

    /// Sets the description that people and models read: what the tool does, when to use it, and what it returns.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Declares what running the tool does to the world.
    #[must_use]
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets the pool, the group of workers that runs the tool.
    #[must_use]
    pub fn pool(mut self, pool: impl Into<String>) -> Self {
        self.spec.pool = pool.into();
        self
    }

    /// Limits the duration of one attempt, in whole ms.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout_ms = duration::whole_ms(timeout);
        self
    }

    /// Sets when a failed attempt is retried.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.spec.retry = retry;
        self
    }

    /// Sets how many retries run, over all calls of the tool.
    #[must_use]
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.spec.retry_budget = budget;
        self
    }

    /// Limits the attempts that one worker runs at the same time. Limits belong to pools, so a tool of the pool `default`
    /// or `commands` moves to its own pool, named after it. Only in the pool of models does each model have its own limit.
    #[must_use]
    pub fn concurrency(mut self, limit: u32) -> Self {
        self.concurrency = Some(limit);
        if self.spec.pool == default_pool() || self.spec.pool == COMMANDS_POOL {
            self.spec.pool.clone_from(&self.spec.name);
        }
        self
    }

    /// Declares that each attempt starts a program on the worker's machine, so that it counts for the worker's limit of
    /// programs. A tool of the default pool moves to the pool `commands`: tools that start no programs then never wait for
    /// it.
    #[must_use]
    pub fn starts_programs(mut self) -> Self {
        self.starts_programs = true;
        if self.spec.pool == default_pool() {
            COMMANDS_POOL.clone_into(&mut self.spec.pool);
        }
        self
    }

    /// For a tool that a model calls repeatedly until something changes: an identical call is then never refused as a
    /// repetition.
    #[must_use]
    pub fn polling(mut self) -> Self {
        self.spec.polling = true;
        self
    }

    /// Runs a turn's calls to sequential tools one after the other, in order, instead of in parallel.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.spec.sequential = true;
        self
    }

    /// Switches repairs off: damaged arguments go back to the model, even if they could be repaired without loss.
    #[must_use]
    pub fn exact_arguments(mut self) -> Self {
        self.spec.repairs = false;
        self
    }

    /// Registers a secret that the tool uses: it is replaced by `[secret]` in results and errors, plain and in common
    /// encodings such as JSON and Base64. A worker removes the secrets of all its tools from the results of each.
    #[must_use]
    pub fn secret(mut self, value: impl Into<String>) -> Self {
        self.secrets = self.secrets.and(&value.into().into());
        self
    }

    /// Registers several secrets, as [`Tool::secret`] does.
    #[must_use]
    pub fn with_secrets(mut self, secrets: &Secrets) -> Self {
        self.secrets = self.secrets.union(secrets);
        self
    }

    /// The secrets that are removed from its results and errors.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Removes these as well. Tools whose own secrets are among them share one set, which is large once it is in use.
    pub fn share_secrets(&mut self, all: &Secrets) {
        self.secrets = if self.secrets.are_within(all) { all.clone() } else { self.secrets.union(all) };
    }

    /// Runs one attempt. Never panics: a panic of the tool becomes class `internal`, effect possible. An output over the
    /// limits becomes an error. Errors contain no names of internal hosts, and neither errors nor results contain a secret
    /// of the tool.
    pub fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let (handler, secrets, call) = (Arc::clone(&self.handler), self.secrets.clone(), context.call);
        let context = Context { secrets: secrets.clone(), ..context };
        let sent = if arguments.get().len() <= MAX_KNOWN { arguments.get().to_owned() } else { String::new() };
        let attempt = async move { handler.run(context, arguments).await };
        let end = AssertUnwindSafe(attempt).catch_unwind();
        end.map(move |end| end.unwrap_or_else(|panic| Err(panicked(&*panic))))
            .map(move |result| checked(result, &secrets).map_err(|failure| redact(call, failure, &secrets, &sent)))
            .boxed()
    }
}

/// Arguments of at most so many bytes are kept until the tool ends, so that an error may quote them: a model writes no more.
const MAX_KNOWN: usize = 64 * 1024;

/// Returns the result without secrets; an output over the limits becomes a failure. Limits are checked last, so that
/// the start of an output that the failure quotes contains no part of a secret.
fn checked(result: ToolResult, secrets: &Secrets) -> ToolResult {
    output::within_limits(secrets.redact_output(result?)?)
}

/// Returns the failure as it may be stored and shown. Only the debug log contains the names of hosts.
fn redact(call: CallId, failure: Failure, secrets: &Secrets, sent: &str) -> Failure {
    let failure = secrets.redact_failure(failure);
    let redacted = redact_failure(failure.clone(), None, sent);
    let error = failure.for_the_record();
    if redacted.for_the_record() != error {
        let error = limits::shorten(&error, limits::MAX_ERROR_MESSAGE);
        tracing::debug!(%call, error, "Removed host names from an error");
    }
    redacted
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("spec", &self.spec).field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("the tool panicked: {}", text.unwrap_or("(no message)"));
    Failure::new(ErrorClass::Internal, limits::shorten(&message, limits::MAX_ERROR_MESSAGE))
}

/// Refuses a tool whose name or pool is reserved for models, or whose name is that of deliveries; the error says which.
pub fn check_reserved(spec: &ToolSpec) -> Result<(), String> {
    if spec.name == webhook::TOOL {
        return Err("this is the name of a built-in tool; choose another".to_owned());
    }
    if spec.pool == turn::POOL {
        return Err(format!("pool {:?} is reserved for models; choose another name", turn::POOL));
    }
    match turn::model_name(&spec.name) {
        Some(_) => {
            Err(format!("names that start with {:?} are reserved for models; choose another", turn::tool_name("")))
        }
        None => Ok(()),
    }
}

/// Two tools that one worker cannot run together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolConflict {
    /// Two tools have the same name.
    #[error("tool {0:?} is declared twice; each name may be used only once")]
    Name(String),
    /// Two tools set different limits for one pool.
    #[error(
        "pool {pool:?}: tool {first:?} sets concurrency {first_limit}, tool {second:?} sets {second_limit}; \
         a pool has one limit"
    )]
    Concurrency {
        /// The pool.
        pool: String,
        /// The tool that was declared first.
        first: String,
        /// Its limit.
        first_limit: u32,
        /// The tool that disagrees.
        second: String,
        /// Its limit.
        second_limit: u32,
    },
}

/// Checks that one worker can run all tools: names are unique, and a pool has one concurrency limit. In the pool of models
/// each model has its own limit.
pub fn check_compatible(tools: &[Tool]) -> Result<(), ToolConflict> {
    let mut names = HashSet::new();
    let mut limits: HashMap<&str, (&Tool, u32)> = HashMap::new();
    for tool in tools {
        if !names.insert(tool.spec.name.as_str()) {
            return Err(ToolConflict::Name(tool.spec.name.clone()));
        }
        let Some(limit) = tool.concurrency.filter(|_| tool.spec.pool != turn::POOL) else { continue };
        let (first, first_limit) = *limits.entry(tool.spec.pool.as_str()).or_insert((tool, limit));
        if first_limit != limit {
            return Err(ToolConflict::Concurrency {
                pool: tool.spec.pool.clone(),
                first: first.spec.name.clone(),
                first_limit,
                second: tool.spec.name.clone(),
                second_limit: limit,
            });
        }
    }
    Ok(())
}
