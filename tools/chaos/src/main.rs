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

mod access;
mod cli;
mod client;
mod clock;
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

use crate::cli::{Cli, Role, RunArgs};

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
            None => run(&cli.run).await,
        }
    })
}

/// Runs to the end or until a signal. Every process that it started ends with it.
async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        report = run::run(args) => {
            let report = report?;
            let text = if args.json { serde_json::to_string(&report)? } else { report.table() };
            writeln!(std::io::stdout(), "{text}")?;
            Ok(match (report.passes(args.strict), report.proves()) {
                (false, _) => ExitCode::FAILURE,
                (true, false) => ExitCode::from(INCONCLUSIVE),
                (true, true) => ExitCode::SUCCESS,
            })
        }
        _ = interrupt.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminate.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}
