//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::schedule::Redundancy;

/// Injects random faults into a complete Redial, then checks its guarantees.
///
/// Starts Postgres, NATS, 2 dispatchers and 4 workers of its own (with --cluster three servers of NATS, with --standby two of
/// Postgres), sends calls and tasks of two tenants through them, and
/// injects faults at random. At the end it compares what clients received, what tools did and what is on record.
///
/// It also watches the machine: a time in which the machine itself stood still neither accuses Redial of a lost lease, nor
/// counts for a recovery target.
///
/// Exit code 0 if every invariant holds; 1 if not; 3 if every invariant holds, and the machine stood still for more than a
/// tenth of the run, so that it proves nothing.
#[derive(Parser, Debug)]
#[command(name = "redial-chaos", bin_name = "./dev chaos", version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunArgs {
    /// Seed of the load and of the faults [default: a random one, which is printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Bare tool calls
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub(crate) calls: u32,
    /// Tasks of a scripted model
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) tasks: u32,
    /// Faults to inject
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) faults: u32,
    /// Only faults whose name in the report contains one of these texts, separated by commas
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) only: String,
    /// Maximum duration of the run; the report names what was left out to keep it
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) minutes: u32,
    /// NATS is a cluster of three servers that keep three replicas; its faults are those of a cluster then, and not those of a disk
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Postgres has a synchronous standby, which is promoted
    #[arg(long)]
    pub(crate) standby: bool,
    /// An interpreter for the workers in Python; without it all workers are in Rust
    #[arg(long, value_name = "FILE", env = "REDIAL_PYTHON")]
    pub(crate) python: Option<PathBuf>,
    /// Workers in Python, of the three that have tools
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub(crate) python_workers: u32,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit code 1 for a missed recovery target, too
    #[arg(long)]
    pub(crate) strict: bool,
}

impl RunArgs {
    /// Which servers are more than one.
    pub(crate) const fn redundancy(&self) -> Redundancy {
        Redundancy { cluster: self.cluster, standby: self.standby }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Role {
    /// A worker of the run
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Breaks the containers of a running Compose project; `./dev compose` starts one for it
    #[command(hide = true)]
    Compose(ComposeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct WorkerArgs {
    #[arg(long)]
    pub(crate) nats_url: String,
    #[arg(long)]
    pub(crate) ledger: PathBuf,
    #[arg(long)]
    pub(crate) models: PathBuf,
    /// What its tool gives away
    #[arg(long)]
    pub(crate) secret: String,
    /// What it can run
    #[arg(long, value_enum, default_value_t = ToolSet::Whole)]
    pub(crate) tools: ToolSet,
}

#[derive(Args, Debug)]
pub(crate) struct ComposeArgs {
    /// Seed of the load and of the faults [default: a random one, which is printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Bare tool calls
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(crate) calls: u32,
    /// Tasks of a scripted model
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) tasks: u32,
    /// Faults to inject; 30 are each of five kinds in each of six services
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) faults: u32,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The project's name
    #[arg(long)]
    pub(crate) project: String,
    /// The file of settings that Compose has read
    #[arg(long)]
    pub(crate) env: PathBuf,
    /// The file that tools write to
    #[arg(long)]
    pub(crate) ledger: PathBuf,
    /// Port of NATS on this machine
    #[arg(long)]
    pub(crate) nats: u16,
    /// Port of Postgres on this machine
    #[arg(long)]
    pub(crate) postgres: u16,
    /// Port of the gateway on this machine
    #[arg(long)]
    pub(crate) http: u16,
}

/// What a worker can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolSet {
    /// Every tool of the main pool.
    #[default]
    Whole,
    /// The same without the optional tool.
    WithoutOptional,
    /// Only the tool of the second pool.
    Aside,
    /// Only the model.
    Models,
}

impl ToolSet {
    /// The identity of such a worker, and the pool of its credentials.
    pub(crate) const fn identity(self) -> (&'static str, &'static str) {
        match self {
            Self::Whole | Self::WithoutOptional => ("tools", "default"),
            Self::Aside => ("aside", "aside"),
            Self::Models => ("models", "models"),
        }
    }

    /// As an argument.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::WithoutOptional => "without-optional",
            Self::Aside => "aside",
            Self::Models => "models",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_sets_are_read_as_they_are_written() {
        for tools in ToolSet::value_variants() {
            assert_eq!(ToolSet::from_str(tools.as_str(), false), Ok(*tools));
        }
    }
}
