//! `redial-chaos`, which `./dev chaos` starts: see `cli.rs`.
//!
//! | file | does |
//! | --- | --- |
//! | `schedule.rs`, `load.rs` | which faults and which work, from a seed |
//! | `scene.rs`, `worker.rs`, `disk.rs`, `clock.rs` | everything that runs, behind proxies |
//! | `client.rs`, `echo.rs` | who submits, and who repeats what was said |
//! | `faults.rs` | injects, heals, measures recovery |
//! | `run.rs`, `report.rs` | one run, and what it has to say |

mod cli;
mod client;
mod clock;
mod disk;
mod echo;
mod faults;
mod load;
mod report;
mod run;
mod scene;
mod schedule;
mod worker;

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Cli, Role, RunArgs};

/// As shells say it of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    if cli.role.is_none() {
        disk::live_apart();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.role {
            Some(Role::Worker(args)) => worker::run(&args).await.map(|()| ExitCode::SUCCESS),
            None => run(&cli.run).await,
        }
    })
}

/// A run, until its end or until somebody has enough of it. Everything that it started is its own, and ends with it.
async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        report = run::run(args) => {
            let report = report?;
            let text = if args.json { serde_json::to_string(&report)? } else { report.table() };
            writeln!(std::io::stdout(), "{text}")?;
            Ok(ExitCode::from(u8::from(!report.passes(args.strict))))
        }
        _ = interrupt.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminate.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}
