//! `redial-chaos`, which `./dev chaos` starts: see `cli.rs`.
//!
//! | file | does |
//! | --- | --- |
//! | `schedule.rs`, `load.rs` | which faults and which work, from a seed |
//! | `fixture.rs`, `worker.rs`, `disk.rs` | servers and processes, behind proxies |
//! | `access.rs` | tenants, users and worker identities with their credentials |
//! | `client.rs`, `stranger.rs` | submits; listens where it must hear nothing |
//! | `faults.rs` | injects, heals, measures recovery |
//! | `watchdog.rs` | notices when the machine itself stands still |
//! | `run.rs`, `report.rs` | one run, and its report |
//! | `recorded.rs` | checks what another run has left |

mod access;
mod cli;
mod client;
mod disk;
mod faults;
mod fixture;
mod load;
mod recorded;
mod report;
mod run;
mod schedule;
mod stranger;
mod watchdog;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Cli, Role};

/// The exit code that shells report for a program that Ctrl-C ended.
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
            Some(Role::Check(args)) => recorded::check(&args).await,
            None => until_signal(Box::pin(run::run(&cli.run))).await,
        }
    })
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
