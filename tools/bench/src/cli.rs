//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cases::Case;

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
    /// Only these cases, such as a,c,h [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CASES")]
    pub(crate) cases: Vec<Case>,
    /// Small numbers: minutes instead of half an hour, and rough figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Calls in each throughput measurement [default: 100000, quick: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) calls: Option<u32>,
    /// Calls in the latency measurement [default: 1000, quick: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) sequential: Option<u32>,
    /// Calls on record in case (e); five million need 10 GB of disk [default: 5000000, quick: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    pub(crate) history: Option<u32>,
    /// Measure this program `redial`, such as one of an older commit, beside the one that was built here
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<PathBuf>,
    /// Shared buffers of Postgres, such as 128MB [default: as `redial dev` chooses it from the memory of the machine]
    #[arg(long, value_name = "SIZE")]
    pub(crate) shared_buffers: Option<String>,
    /// Rounds, in which what is compared is measured in a changing order; medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Print every value of every round as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Role {
    /// Ask every documented question of a long history, and print the plans; exit code 1 if one scans a table
    Plans(PlansArgs),
}

#[derive(Args, Debug)]
pub(crate) struct PlansArgs {
    /// Calls of the history; five million need about 10 GB of disk while it runs
    #[arg(long, default_value_t = 5_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(10_000..=100_000_000))]
    pub(crate) calls: u32,
}
