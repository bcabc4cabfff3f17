//! `redial-bench`, which `./dev bench` starts: Redial against the baseline, on the same servers, in the same run.
//!
//! The baseline is the bare work that any system of this shape must do for a call: one insert, one message to a worker,
//! one update to running, one message back, one update to done with the result inserted; in batches, pipelined, with
//! the same durability, with one call in a message or with 50. Each round measures all sides in turns, so that a noisy
//! machine affects all alike, and ratios are what counts.
//!
//! | file | does |
//! | --- | --- |
//! | `cases.rs`, `plan.rs` | the table of cases; which of them, and how much of each |
//! | `servers.rs`, `fleet.rs` | starts private servers; dispatchers and workers as processes of their own on them |
//! | `run.rs`, `sides.rs` | one run; measures each side of a comparison once a round |
//! | `before.rs` | an older program, measured beside the one that was built |
//! | `load.rs`, `http.rs` | submits calls as a client does |
//! | `waiting_http.rs` | HTTP calls whose answers are held back |
//! | `baseline.rs` | runs the baseline |
//! | `database.rs`, `meter.rs` | asks Postgres; reads processor time, memory and bytes written |
//! | `samples.rs`, `report.rs`, `output.rs` | computes medians and ratios; prints the table |
//! | `plans.rs` | asks documented questions of a long history, and prints their plans |

mod baseline;
mod before;
mod cases;
mod cli;
mod database;
mod fleet;
mod http;
mod load;
mod meter;
mod output;
mod plan;
mod plans;
mod report;
mod run;
mod samples;
mod servers;
mod sides;
mod waiting_http;

use clap::Parser as _;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::{Cli, Role};

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    tracing_subscriber::fmt().with_max_level(LevelFilter::WARN).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.role {
            Some(Role::Plans(args)) => plans::run(&args).await,
            None => run::run(&cli.run).await,
        }
    })
}
