//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::case::Case;

/// Measures Redial against the bare work that any system of its shape must do.
///
/// Starts Postgres, NATS, dispatchers and workers of its own in .redial/bench, and removes all of it at the end.
#[derive(Parser, Debug)]
#[command(name = "redial-bench", bin_name = "./dev bench", version, max_term_width = 110)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Only these cases, such as a,c,h. a: throughput; b: more processes; c: latency; d: a backlog; e: a long history;
    /// f: slow tools; g: tasks; h: what calls cost; i: a tool that is down; j: another pool's backlog;
    /// k: a million calls that nobody can run [default: all but k]
    #[arg(long, value_delimiter = ',', value_name = "CASES")]
    pub(crate) cases: Vec<Case>,
    /// Small numbers: three minutes instead of eleven, and rough figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Calls in each throughput measurement [default: 100000, quick: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) calls: Option<u32>,
    /// Calls in the latency measurement [default: 1000, quick: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) sequential: Option<u32>,
    /// Rounds; medians are printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Append this run to tools/bench/history.json
    #[arg(long)]
    pub(crate) record: bool,
    /// Print every value of every round as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Role {
    /// Ask every documented question of a long history, and print the plans; exit code 1 if one scans a table
    Plans(PlansArgs),
    /// The worker with slow calls
    #[command(hide = true)]
    SlowWorker(SlowWorkerArgs),
}

#[derive(Args, Debug)]
pub(crate) struct PlansArgs {
    /// Calls of the history; five million need about 10 GB of disk while it runs
    #[arg(long, default_value_t = 5_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    pub(crate) calls: u32,
    /// Only what a gateway answers over HTTP: fail also if an address takes more than 80 ms, or a search more than 300 ms
    #[arg(long)]
    pub(crate) http: bool,
    /// Keep servers and history in this folder; if it has a history, measure that one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct SlowWorkerArgs {
    #[arg(long)]
    pub(crate) slots: u32,
    #[arg(long, env = crate::fleet::NATS_URL)]
    pub(crate) nats_url: String,
}
