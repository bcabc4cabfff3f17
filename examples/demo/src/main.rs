//! `./dev demo`: plays scenes on a private Redial and prints what it observed. Exit code 0 if every scene holds, 1 if
//! not.
//!
//! It does what a user would do: it starts `redial dev` and workers, and runs the `redial` program for everything else.

mod records;
mod redial;
mod scenes;
mod service;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{redial::Redial, scenes::Scene};

/// A scene that takes longer than this fails.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Shows what Redial does, on private servers in .redial/demo; exit code 1 if a scene does not hold.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Keep everything running afterwards, until Ctrl-C, and print the address of the console
    #[arg(long)]
    stay: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            tell(format!("demo: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(Args { stay }: Args) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut stop = std::pin::pin!(stopped()?);
    let mut redial = Redial::new().await?;
    let played = tokio::select! {
        played = play_all(&mut redial, began) => played,
        () = &mut stop => {
            tell("\ndemo: stopping all processes");
            redial.close().await.unwrap_or_else(|error| tell(format!("demo: {error:#}")));
            return Ok(ExitCode::from(130));
        }
    };
    if stay && played.is_ok() {
        print(format!("Look at what happened: {}/console   (Ctrl-C ends the demo)", redial.http_url()));
        stop.await;
    }
    // Also after an error: no process may stay behind.
    let closed = redial.close().await;
    let (held, all) = played?;
    closed?;
    let seconds = began.elapsed().as_secs_f64();
    print(format!("{held} of {all} hold, in {seconds:.1} s; every process of the demo has ended"));
    if !stay {
        print("To look at it in a browser: ./dev demo --stay");
    }
    Ok(if held == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays every scene, even after one failed; returns how many held, and how many were played.
async fn play_all(redial: &mut Redial, began: Instant) -> anyhow::Result<(usize, usize)> {
    print(format!("Redial's demo: real tools and a real queue; data and logs in {}", redial.folder().display()));
    let dev = redial.start().await?.as_secs_f64();
    let all = began.elapsed().as_secs_f64();
    print(format!(
        "redial dev was ready after {dev:.1} s, two more workers after {all:.1} s; the models are scripted\n"
    ));
    let mut held = 0;
    for (scene, number) in Scene::ALL.into_iter().zip(1..) {
        held += usize::from(play(scene, number, redial).await);
    }
    if let Some(task) = redial.shown_task {
        print(format!("\n$ redial show {task}"));
        print(redial.run(&["show", &task.to_string()]).await?.trim_end());
    }
    print("");
    Ok((held, Scene::ALL.len()))
}

/// Plays a scene and prints the result; returns whether it holds.
async fn play(scene: Scene, number: usize, redial: &mut Redial) -> bool {
    let began = Instant::now();
    let (title, on_terminal) = (scene.title(), std::io::stdout().is_terminal());
    if on_terminal {
        let mut stdout = std::io::stdout();
        let _ = write!(stdout, "… {number:>2} {title}").and_then(|()| stdout.flush());
    }
    let played = tokio::time::timeout(TIME_LIMIT, scene.play(redial)).await;
    let played = played.unwrap_or_else(|_| bail!("did not end within {} s", TIME_LIMIT.as_secs()));
    let holds = played.is_ok();
    let text = played.unwrap_or_else(|error| format!("{error:#}; logs: {}/*.log", redial.folder().display()));
    let (mark, colour) = if holds { ("✓", 32) } else { ("✗", 31) };
    let seconds = began.elapsed().as_secs_f64();
    let line = format!("{number:>2} {title:<15}  {text}  ({seconds:.1} s)");
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match (on_terminal, no_colour) {
        (true, false) => print(format!("\r\x1b[K\x1b[{colour}m{mark}\x1b[0m {line}")),
        (true, true) => print(format!("\r\x1b[K{mark} {line}")),
        (false, _) => print(format!("{mark} {line}")),
    }
    holds
}

/// Completes on Ctrl-C, on SIGTERM, and when the terminal is closed.
fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [interrupt, terminate, hangup] = kinds.map(signal);
    let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Writes a line to standard output. A closed pipe (`| head`) is not an error.
fn print(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a line to standard error.
fn tell(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}
