//! `redial-bench`, which `./dev bench` starts: Redial against the baseline, on the same servers, in the same run.
//!
//! The baseline is the bare work that any system of this shape must do for a call: one insert, one message to a worker,
//! one update to running, one message back, one update to done with the result inserted; in batches, pipelined, with
//! the same durability, with one call in a message or with 50. Each round measures all sides in turns, so that a noisy
//! machine affects all alike, and ratios are what counts.
//!
//! | file | does |
//! | --- | --- |
//! | `case.rs`, `plan.rs` | the cases, and how much of each |
//! | `servers.rs`, `environment.rs`, `fleet.rs` | starts private servers; dispatchers and workers as processes of their own on them |
//! | `rounds.rs`, `turns.rs` | runs every case once a round; the order of what is compared |
//! | `before.rs` | an older program, measured beside the one that was built |
//! | `load.rs`, `tasks.rs`, `slow_worker.rs` | submits calls and tasks as a client does; runs slow calls |
//! | `unserved.rs` | measures beside calls that nobody can run |
//! | `waiting_http.rs` | holds back the answers to HTTP calls |
//! | `baseline.rs` | runs the baseline, and finds its fastest tuning |
//! | `payloads.rs` | many of the largest calls at once |
//! | `wal.rs` | shows what writes the write-ahead log |
//! | `database.rs`, `meter.rs` | asks Postgres; reads processor time, memory and bytes written |
//! | `samples.rs`, `report.rs` | computes medians, ratios and targets; prints the table |
//! | `plans.rs` | asks documented questions of a long history, and prints their plans |
//! | `history.rs` | keeps recorded runs, and compares a run with the last of them |

mod baseline;
mod before;
mod case;
mod cli;
mod database;
mod environment;
mod fleet;
mod history;
mod http;
mod load;
mod meter;
mod output;
mod payloads;
mod plan;
mod plans;
mod report;
mod rounds;
mod run;
mod samples;
mod servers;
mod slow_worker;
mod tasks;
mod turns;
mod unserved;
mod waiting_http;
mod wal;

use clap::Parser as _;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::{Cli, Role};

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    // The fleet waits for a line of level info in the log of a worker.
    let level = if matches!(cli.role, Some(Role::SlowWorker(_))) { LevelFilter::INFO } else { LevelFilter::WARN };
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.role {
            Some(Role::SlowWorker(args)) => slow_worker::run(&args).await,
            Some(Role::Plans(args)) => plans::run(&args).await,
            Some(Role::Tune(args)) => baseline::tune(&args).await,
            Some(Role::Payloads(args)) => payloads::run(&args).await,
            Some(Role::Wal(args)) => wal::run(&args).await,
            None => run::run(&cli.run).await,
        }
    })
}
