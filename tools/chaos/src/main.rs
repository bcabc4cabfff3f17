//! `redial-chaos`, which `./dev chaos` starts: see `cli.rs`.
//!
//! | file | does |
//! | --- | --- |
//! | `schedule.rs`, `load.rs` | which faults and which work, from a seed |
//! | `fixture.rs`, `worker.rs`, `disk.rs`, `clock.rs` | servers and processes, behind proxies |
//! | `access.rs` | tenants, users and worker identities with their credentials |
//! | `client.rs`, `echo.rs`, `stranger.rs` | submits; repeats messages of others; listens where it must hear nothing |
//! | `faults.rs` | injects, heals, measures recovery |
//! | `watchdog.rs` | notices when the machine itself stands still |
//! | `run.rs`, `ended.rs`, `report.rs` | one run, its result, and the report |
//! | `compose.rs` | the containers of a Compose project |

mod access;
mod cli;
mod client;
mod clock;
mod compose;
mod disk;
mod echo;
mod ended;
mod faults;
mod fixture;
mod load;
mod report;
mod run;
mod schedule;
mod stranger;
mod watchdog;
mod worker;

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Cli, ComposeArgs, Role, RunArgs};

/// The exit code that shells report for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// Nothing was broken, and the machine stood still for so long that this proves nothing.
const INCONCLUSIVE: u8 = 3;

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    if cli.role.is_none() {
        disk::live_apart();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.role {
            Some(Role::Worker(args)) => worker::run(&args).await.map(|()| ExitCode::SUCCESS),
            Some(Role::Compose(args)) => until_signal(Box::pin(compose(&args))).await,
            None => until_signal(Box::pin(run(&cli.run))).await,
        }
    })
}

async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let report = run::run(args).await?;
    let text = if args.json { serde_json::to_string(&report)? } else { report.table() };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(match (report.passes(args.strict), report.proves()) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(INCONCLUSIVE),
        (true, true) => ExitCode::SUCCESS,
    })
}

async fn compose(args: &ComposeArgs) -> anyhow::Result<ExitCode> {
    let report = compose::run(args).await?;
    let text = if args.json { serde_json::to_string(&report)? } else { report.table() };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(if report.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs to the end or until a signal. Every process that it started ends with it.
async fn until_signal(run: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = run => done,
        _ = interrupt.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminate.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}
