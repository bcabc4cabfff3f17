//! `./dev demo`: runs scenarios on a private Redial and prints what it observed. Exit code 0 if every scenario holds,
//! 1 if not.
//!
//! It does what a user would do: it starts `redial dev` and workers, and runs the `redial` program for everything else.

mod dates;
mod http_service;
mod output;
mod poll;
mod real_model;
mod record;
mod scenarios;
mod showcase;
mod stack;
mod task;

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{real_model::RealModel, scenarios::Scenario, showcase::Desk, stack::Stack};

/// Shows what Redial does, on private servers in .redial/demo; exit code 1 if a scenario does not hold.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Run the agents' scenarios with a real model at this OpenAI-compatible address, such as
    /// http://127.0.0.1:8000/v1; the demo prints what the model did and does not compare it with a script
    #[arg(long, value_name = "URL", requires = "model")]
    model_url: Option<String>,
    /// Name of the real model, as its provider calls it
    #[arg(long, value_name = "NAME", requires = "model_url")]
    model: Option<String>,
    /// Environment variable with the API key of the real model
    #[arg(long, value_name = "VARIABLE", requires = "model_url")]
    key_env: Option<String>,
    /// Longest time of one scenario with a real model, in seconds; what has not ended then is cancelled
    #[arg(long, value_name = "SECONDS", requires = "model_url", default_value_t = 300)]
    scene_seconds: u64,
    /// Keep everything running afterwards, until Ctrl-C, and print the address of the console
    #[arg(long)]
    stay: bool,
}

impl Args {
    fn real_model(self) -> anyhow::Result<Option<RealModel>> {
        let limit = scenarios::check_limit(self.scene_seconds)?;
        let (Some(url), Some(model)) = (self.model_url, self.model) else { return Ok(None) };
        Ok(Some(RealModel { url, model, key_env: self.key_env, limit }))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let stay = args.stay;
    let done = match args.real_model() {
        Ok(model) => run(model, stay).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            output::error_line(format!("demo: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(real_model: Option<RealModel>, stay: bool) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut stop = stop_signals()?;
    let mut stack = Stack::new(real_model).await?;
    let result = tokio::select! {
        result = run_all(&mut stack, began) => Some(result),
        () = &mut stop => None,
    };
    let Some(result) = result else {
        output::error_line("\ndemo: stopping all processes");
        if let Err(error) = stack.close().await {
            output::error_line(format!("demo: {error:#}"));
        }
        return Ok(ExitCode::from(130));
    };
    if stay && result.is_ok() {
        tokio::select! {
            () = show(stack.http_url()) => {}
            () = &mut stop => {}
        }
    }
    // Also after an error: no process may stay behind.
    let closed = stack.close().await;
    let (held, all) = result?;
    closed?;
    let seconds = began.elapsed().as_secs_f64();
    output::line(format!("{held} of {all} hold, in {seconds:.1} s; every process of the demo has ended"));
    if !stay {
        output::line("To look at it in a browser: ./dev demo --stay");
    }
    Ok(if held == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs every scenario, even after one failed; returns how many held, and how many ran.
async fn run_all(stack: &mut Stack, began: Instant) -> anyhow::Result<(usize, usize)> {
    output::line(format!("Redial's demo: real tools and a real queue; data and logs in {}", stack.folder().display()));
    let dev = stack.start().await?.as_secs_f64();
    let all = began.elapsed().as_secs_f64();
    output::line(format!(
        "redial dev was ready after {dev:.1} s, two more workers after {all:.1} s; {}\n",
        stack.model_description()
    ));
    let scenarios: Vec<Scenario> =
        Scenario::ALL.into_iter().filter(|scenario| stack.is_scripted() || scenario.has_model()).collect();
    let mut held = 0;
    for (scenario, number) in scenarios.iter().zip(1..) {
        held += usize::from(scenarios::run(*scenario, number, stack).await);
    }
    if let Some(task) = stack.shown_task {
        output::line(format!("\n$ redial show {task}"));
        output::line(stack.cli.run(&["show", &task.to_string()]).await?.expect_success()?.stdout.trim_end());
    }
    output::line("");
    Ok((held, scenarios.len()))
}

/// Fills the console, and goes on until it is stopped. What fails there is told, and what is there can be looked at.
async fn show(url: &str) {
    let worked = async {
        let mut desk = Desk::open(url).await?;
        desk.work().await?;
        anyhow::Ok(desk)
    };
    let desk = worked.await;
    output::line(format!("Look at what happened: {url}/console   (Ctrl-C ends the demo)"));
    let gone_on = match desk {
        Ok(mut desk) => desk.go_on().await,
        Err(error) => Err(error),
    };
    if let Err(error) = gone_on {
        output::error_line(format!("demo: {error:#}"));
    }
    std::future::pending::<()>().await;
}

/// Completes on Ctrl-C, on SIGTERM, and when the terminal is closed.
fn stop_signals() -> anyhow::Result<impl Future<Output = ()> + Unpin> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [interrupt, terminate, hangup] = kinds.map(signal);
    let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
    Ok(Box::pin(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }))
}
