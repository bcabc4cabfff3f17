//! A tool that does what its arguments say.

use std::{path::PathBuf, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{ErrorClass, Failure, RetryPolicy, ToolEffect, ToolSpec};
use redial_tools::{Context, Handler, Tool, ToolResult};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::{Ledger, ToolEvent};

/// The tool's arguments. Every field may be absent; without any it answers `{"attempt": n}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Orders {
    /// Makes calls different; ignored.
    #[serde(rename = "n")]
    _number: u64,
    /// Fail with this class …
    fail: Option<ErrorClass>,
    /// … in so many first attempts; without it in every one.
    times: Option<u32>,
    /// Fail before the effect, with `effect_possible` false.
    harmless: bool,
    /// Ask for this pause when failing.
    retry_after_ms: Option<u64>,
    /// Wait so long before the effect.
    before_ms: u64,
    /// Wait until this file exists.
    hold: Option<PathBuf>,
    /// Be `unavailable`, without any effect, as long as this file exists.
    down_while: Option<PathBuf>,
    /// Abort the whole process.
    die: bool,
    /// Wait so long after the effect.
    after_ms: u64,
    /// Answer with this JSON text.
    output: Option<String>,
}

/// Makes a call's arguments of a value.
#[expect(clippy::needless_pass_by_value, reason = "so that json!() can stand in the call")]
pub fn arguments(value: Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(&value).unwrap()
}

/// Makes a tool that does what its arguments say and records what it does.
pub fn scripted_tool(name: &str, effect: ToolEffect, ledger: &Ledger) -> Tool {
    let retry = RetryPolicy { initial_ms: 50, factor: 2.0, cap_ms: 300, max_attempts: 20, deadline_ms: 120_000 };
    let spec = ToolSpec { effect, retry, ..ToolSpec::named(name) };
    Tool::from_handler(spec, ScriptedTool(ledger.clone()))
}

struct ScriptedTool(Ledger);

impl Handler for ScriptedTool {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let ledger = self.0.clone();
        async move {
            let orders: Orders = serde_json::from_str(arguments.get())
                .map_err(|error| Failure::new(ErrorClass::InvalidArguments, error.to_string()).without_effect())?;
            follow(&orders, Recorder::new(ledger, context)).await
        }
        .boxed()
    }
}

async fn follow(orders: &Orders, mut recorder: Recorder) -> ToolResult {
    tokio::time::sleep(Duration::from_millis(orders.before_ms)).await;
    while orders.hold.as_ref().is_some_and(|file| !file.exists()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if orders.die {
        std::process::abort();
    }
    if orders.down_while.as_ref().is_some_and(|file| file.exists()) {
        recorder.note(ToolEvent::Ended);
        recorder.done = true;
        return Err(Failure::new(ErrorClass::Unavailable, "told to be down").without_effect());
    }
    let attempt = recorder.context.attempt;
    let failure = orders.fail.filter(|_| orders.times.is_none_or(|times| attempt <= times)).map(|class| {
        let failure = Failure::new(class, format!("told to fail with {class}"));
        let failure = if orders.harmless { failure.without_effect() } else { failure };
        Failure { retry_after_ms: orders.retry_after_ms, ..failure }
    });
    if failure.as_ref().is_none_or(|failure| failure.effect_possible) {
        recorder.note(ToolEvent::Effect);
    }
    tokio::time::sleep(Duration::from_millis(orders.after_ms)).await;
    recorder.note(ToolEvent::Ended);
    recorder.done = true;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let text = orders.output.clone().unwrap_or_else(|| format!("{{\"attempt\":{attempt}}}"));
    Ok(RawValue::from_string(text).expect("the test told the tool to answer with valid JSON"))
}

/// Records what one execution does, and on drop that it was stopped.
struct Recorder {
    ledger: Ledger,
    context: Context,
    execution: Uuid,
    done: bool,
}

impl Recorder {
    fn new(ledger: Ledger, context: Context) -> Self {
        let recorder = Self { ledger, context, execution: Uuid::new_v4(), done: false };
        recorder.note(ToolEvent::Started);
        recorder
    }

    fn note(&self, event: ToolEvent) {
        self.ledger.note(event, &self.context, self.execution);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.done {
            self.note(ToolEvent::Stopped);
        }
    }
}
