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
    /// k: a million calls that nobody can run; l: over HTTP; m: waiting HTTP calls [default: all but k]
    #[arg(long, value_delimiter = ',', value_name = "CASES")]
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
    /// Ended calls on record in case (e); five million need 11 GB of disk [default: 5000000, quick: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    pub(crate) history: Option<u32>,
    /// Measure this program `redial`, such as one of an older commit, beside the one that was built here
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Rounds, in which what is compared is measured in a changing order; medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Append this run to tools/bench/history.json
    #[arg(long)]
    pub(crate) record: bool,
    /// Print every value of every round as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How Postgres is set.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServerArgs {
    /// Of Postgres, such as 128MB [default: as `redial dev` chooses it from the memory of the machine]
    #[arg(long, value_name = "SIZE")]
    pub(crate) shared_buffers: Option<String>,
    /// Another setting of Postgres, such as max_wal_size=4GB; may be given more than once
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
}

impl ServerArgs {
    /// The settings of `redial dev`, and these.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let buffers = self.shared_buffers.clone().map(|size| ("shared_buffers".to_owned(), size));
        redial_servers::settings_for_machine().into_iter().chain(buffers).chain(self.settings.clone()).collect()
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Subcommand, Debug)]
pub(crate) enum Role {
    /// Show what writes the write-ahead log of a call: bytes by table, index and kind of record
    Wal(WalArgs),
    /// Run many of the largest calls at once, and print how much memory the processes need
    Payloads(PayloadsArgs),
    /// Measure the baseline with many tunings, to find the fastest; 10 minutes
    Tune(TuneArgs),
    /// Ask every documented question of a long history, and print the plans; exit code 1 if one scans a table
    Plans(PlansArgs),
    /// The worker with slow calls
    #[command(hide = true)]
    SlowWorker(SlowWorkerArgs),
}

#[derive(Args, Debug)]
pub(crate) struct WalArgs {
    /// Calls of each side
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=500_000))]
    pub(crate) calls: u32,
    /// Show this program `redial`, such as one of an older commit, beside the one that was built here
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
}

#[derive(Args, Debug)]
pub(crate) struct PayloadsArgs {
    /// Calls
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) calls: u32,
    /// MiB of arguments, and of results, of each
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) mebibytes: u32,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// Calls of each measurement
    #[arg(long, default_value_t = 50_000, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) calls: u32,
    /// Rounds; medians are printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
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
    #[arg(long, env = crate::environment::NATS_URL)]
    pub(crate) nats_url: String,
}

/// The arguments of a run without any.
#[cfg(test)]
pub(crate) fn defaults() -> RunArgs {
    Cli::parse_from(["redial-bench"]).run
}
