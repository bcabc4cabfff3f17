//! `./dev demo`: plays scenes on a private Redial and says what it saw. Exit code 0 if every scene held, 1 if not.
//!
//! It does what a user would: it starts `redial dev` and workers, and asks the `redial` program for the rest.

mod dates;
mod models;
mod output;
mod partner;
mod record;
mod scenes;
mod stage;
mod task;

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{models::Endpoint, scenes::Act, stage::Stage};

/// Shows what Redial does, on private servers in .redial/demo; exit code 1 if anything does not hold.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    /// Play the agents' scenes with a real model behind this OpenAI-compatible address, such as
    /// http://127.0.0.1:8000/v1; what it does is told, not compared with a script
    #[arg(long, value_name = "URL", requires = "model")]
    model_url: Option<String>,
    /// The real model, by its provider's own name
    #[arg(long, value_name = "NAME", requires = "model_url")]
    model: Option<String>,
    /// Environment variable that holds the key of the real model
    #[arg(long, value_name = "VARIABLE", requires = "model_url")]
    key_env: Option<String>,
}

impl Arguments {
    fn endpoint(self) -> Option<Endpoint> {
        Some(Endpoint { url: self.model_url?, model: self.model?, key_env: self.key_env })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse().endpoint()).await {
        Ok(code) => code,
        Err(error) => {
            output::note(format!("demo: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(endpoint: Option<Endpoint>) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut stop = stop_signals()?;
    let mut stage = Stage::new(endpoint).await?;
    let held = tokio::select! {
        held = play(&mut stage, began) => Some(held),
        () = &mut stop => None,
    };
    let Some(held) = held else {
        output::note("\ndemo: stopping everything");
        if let Err(error) = stage.close().await {
            output::note(format!("demo: {error:#}"));
        }
        return Ok(ExitCode::from(130));
    };
    // Whatever went wrong, nothing may stay behind.
    let closed = stage.close().await;
    let (held, all) = held?;
    closed?;
    let seconds = began.elapsed().as_secs_f64();
    output::line(format!("{held} of {all} scenes held, in {seconds:.1} s; every process of the demo has ended"));
    Ok(if held == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays every scene, whatever became of the ones before; returns how many held, of how many.
async fn play(stage: &mut Stage, began: Instant) -> anyhow::Result<(usize, usize)> {
    output::line(format!("Redial's demo: real tools over a real queue; data and logs in {}", stage.folder().display()));
    let dev = stage.start().await?.as_secs_f64();
    let all = began.elapsed().as_secs_f64();
    output::line(format!(
        "redial dev is ready after {dev:.1} s, and with two more workers after {all:.1} s; {}",
        stage.cast()
    ));
    let (mut held, mut played) = (0, 0);
    // A real model has no part in the second act.
    for act in Act::ALL.into_iter().take(if stage.is_scripted() { 2 } else { 1 }) {
        output::line(format!("\n{}", act.title()));
        for scene in act.scenes() {
            played += 1;
            held += usize::from(scenes::play(scene, played, stage).await);
        }
    }
    if let Some(task) = stage.shown {
        output::line(format!("\n$ redial show {task}"));
        output::line(stage.cli.run(&["show", &task.to_string()]).await?.expect_success()?.stdout.trim_end());
    }
    output::line("");
    Ok((held, played))
}

/// Completes at Ctrl-C, SIGTERM, or when the terminal is closed.
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
