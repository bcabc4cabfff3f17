//! The scenarios, one file each. A scenario returns one line about what it observed; an error means that it does not
//! hold.

mod corrected_arguments;
mod durable_call;
mod fallback_model;
mod full_restart;
mod killed_worker;
mod parallel_calls;
mod real_model;
mod unsafe_call;

use std::time::{Duration, Instant};

use anyhow::bail;

pub(crate) use self::real_model::check_limit;
use crate::{output, stack::Stack};

/// A scenario that takes longer than this fails.
const TIME_LIMIT: Duration = Duration::from_mins(1);
/// With a real model a scenario ends what is still open by itself, and needs time for that.
const ENDING: Duration = Duration::from_mins(2);

/// A scenario of the demo.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scenario {
    CorrectedArguments,
    ParallelCalls,
    FallbackModel,
    DurableCall,
    KilledWorker,
    UnsafeCall,
    FullRestart,
}

impl Scenario {
    /// Every scenario, in order.
    pub(crate) const ALL: [Self; 7] = [
        Self::CorrectedArguments,
        Self::ParallelCalls,
        Self::FallbackModel,
        Self::DurableCall,
        Self::KilledWorker,
        Self::UnsafeCall,
        Self::FullRestart,
    ];

    /// True if a model works on a task in it. With a scripted model it compares the record with the script; of a real
    /// model it demands only what holds for every model.
    pub(crate) const fn has_model(self) -> bool {
        matches!(self, Self::CorrectedArguments | Self::ParallelCalls | Self::FallbackModel)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::CorrectedArguments => "wrong arguments",
            Self::ParallelCalls => "parallel calls",
            Self::FallbackModel => "fallback model",
            Self::DurableCall => "durable call",
            Self::KilledWorker => "killed worker",
            Self::UnsafeCall => "unsafe call",
            Self::FullRestart => "full restart",
        }
    }
}

/// Runs a scenario and prints the result; returns whether it holds.
pub(crate) async fn run(scenario: Scenario, number: usize, stack: &mut Stack) -> bool {
    let began = Instant::now();
    let result = match stack.scene_limit() {
        None => {
            output::progress(number, scenario.title());
            let result = tokio::time::timeout(TIME_LIMIT, dispatch(scenario, stack)).await;
            let result = result.unwrap_or_else(|_| bail!("did not end within {} s", TIME_LIMIT.as_secs()));
            result.map(|observed| vec![observed])
        }
        Some(limit) => {
            output::error_line(format!("  {number} {}: at most {} s", scenario.title(), limit.as_secs()));
            let result = tokio::time::timeout(limit + ENDING, with_real_model(scenario, stack, limit)).await;
            result.unwrap_or_else(|_| bail!("did not end within {} s", (limit + ENDING).as_secs()))
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    match &result {
        Ok(observed) => {
            let (first, rest) = observed.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
            output::result(number, scenario.title(), Ok(first), seconds);
            for line in rest {
                output::line(format!("     {line}"));
            }
        }
        Err(error) => {
            let text = format!("{error:#}; logs: {}/*.log", stack.folder().display());
            output::result(number, scenario.title(), Err(&text), seconds);
        }
    }
    result.is_ok()
}

async fn with_real_model(scenario: Scenario, stack: &mut Stack, limit: Duration) -> anyhow::Result<Vec<String>> {
    let (agent, inputs) = match scenario {
        Scenario::CorrectedArguments => corrected_arguments::requests_of_users(&stack.dates),
        Scenario::ParallelCalls => (parallel_calls::AGENT, vec![parallel_calls::input(&stack.dates)]),
        Scenario::FallbackModel => (fallback_model::AGENT, vec![fallback_model::INPUT.to_owned()]),
        other => bail!("{} has no model", other.title()),
    };
    real_model::run(stack, agent, &inputs, limit).await
}

async fn dispatch(scenario: Scenario, stack: &mut Stack) -> anyhow::Result<String> {
    match scenario {
        Scenario::CorrectedArguments => corrected_arguments::run(stack).await,
        Scenario::ParallelCalls => parallel_calls::run(stack).await,
        Scenario::FallbackModel => fallback_model::run(stack).await,
        Scenario::DurableCall => durable_call::run(stack).await,
        Scenario::KilledWorker => killed_worker::run(stack).await,
        Scenario::UnsafeCall => unsafe_call::run(stack).await,
        Scenario::FullRestart => full_restart::run(stack).await,
    }
}
