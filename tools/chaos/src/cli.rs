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
/// It also watches the machine: a time in which the machine itself stood still does not accuse Redial of a lost lease.
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
    /// Exit code 1 for a missed recovery target, too
    #[arg(long)]
    pub(crate) strict: bool,
}

impl RunArgs {
    /// Returns which servers are more than one.
    pub(crate) const fn redundancy(&self) -> Redundancy {
        Redundancy { cluster: self.cluster, standby: self.standby }
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Role {
    /// A worker of the run
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Check the database and the ledger of another run
    #[command(hide = true)]
    Check(CheckArgs),
}

#[derive(Args, Debug)]
pub(crate) struct WorkerArgs {
    #[arg(long)]
    pub(crate) nats_url: String,
    #[arg(long)]
    pub(crate) ledger: PathBuf,
    #[arg(long)]
    pub(crate) models: PathBuf,
    /// What it can run
    #[arg(long, value_enum)]
    pub(crate) tools: ToolSet,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[arg(long, env = "REDIAL_DATABASE_URL")]
    pub(crate) database_url: String,
    /// The file of submissions, a line of JSON each, all of which were acknowledged
    #[arg(long)]
    pub(crate) submitted: PathBuf,
    /// The file that tools wrote to
    #[arg(long)]
    pub(crate) ledger: PathBuf,
}

/// What a worker can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolSet {
    /// Every tool.
    Whole,
    /// The same without the optional tool.
    WithoutOptional,
    /// Only the model.
    Models,
}

impl ToolSet {
    /// Returns the identity of such a worker, and the pool of its credentials.
    pub(crate) const fn identity(self) -> (&'static str, &'static str) {
        match self {
            Self::Whole | Self::WithoutOptional => ("tools", "default"),
            Self::Models => ("models", "models"),
        }
    }

    /// Returns it as an argument.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::WithoutOptional => "without-optional",
            Self::Models => "models",
        }
    }
}
