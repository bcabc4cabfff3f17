//! `./dev demo`: plays scenes on a private Redial and says what it saw. Exit code 0 if every scene held, 1 if not.
//!
//! It does what a user would: it starts `redial dev` and workers, and asks the `redial` program for the rest.

mod output;
mod partner;
mod record;
mod scenes;
mod stage;

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{scenes::Scene, stage::Stage};

/// Shows what Redial does, on private servers in .redial/demo; exit code 1 if anything does not hold.
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {}

#[tokio::main]
async fn main() -> ExitCode {
    Arguments::parse();
    match run().await {
        Ok(code) => code,
        Err(error) => {
            output::note(format!("demo: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut stop = stop_signals()?;
    let mut stage = Stage::new().await?;
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
    let held = held?;
    closed?;
    let seconds = began.elapsed().as_secs_f64();
    let all = Scene::ALL.len();
    output::line(format!("{held} of {all} scenes held, in {seconds:.1} s; every process of the demo has ended"));
    Ok(if held == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays every scene, whatever became of the ones before; returns how many held.
async fn play(stage: &mut Stage, began: Instant) -> anyhow::Result<usize> {
    output::line(format!("Redial's demo: real tools over a real queue; data and logs in {}", stage.folder().display()));
    let dev = stage.start().await?.as_secs_f64();
    let all = began.elapsed().as_secs_f64();
    output::line(format!("redial dev is ready after {dev:.1} s, and with two more workers after {all:.1} s\n"));
    let mut held = 0;
    for (index, scene) in Scene::ALL.into_iter().enumerate() {
        held += usize::from(scenes::play(scene, index + 1, stage).await);
    }
    if let Some(call) = &stage.retried {
        output::line(format!("\n$ redial show {call}"));
        output::line(stage.cli.run(&["show", call]).await?.expect_success()?.stdout.trim_end());
        output::line("");
    }
    Ok(held)
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
