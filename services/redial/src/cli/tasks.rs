//! What `redial task` and `redial tasks` are told.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Args;
use redial_proto::TaskState;

use super::values;
use crate::ids::IdText;

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("who").required(true))]
pub(crate) struct TaskArgs {
    /// The request; - reads it from standard input
    pub(crate) input: String,
    /// Agent of the dispatcher's agents.toml that works on the task
    #[arg(long, value_name = "NAME", group = "who")]
    pub(crate) agent: Option<String>,
    /// File that declares an agent for this task only; JSON if its name ends in .json, else TOML
    #[arg(long, value_name = "FILE", group = "who")]
    pub(crate) agent_file: Option<PathBuf>,
    /// Conversation to continue, or to start with this id [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Idempotency key: a second submission with the same key and content returns the same task
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Wait for the end: print events to standard error and the answer to standard output; exit code 1 if the task fails
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Args, Debug, Default)]
pub(crate) struct TasksArgs {
    /// Only tasks in this state
    #[arg(long, value_parser = values::task_state())]
    pub(crate) state: Option<TaskState>,
    /// Only tasks of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Only tasks of this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only tasks submitted within this time (2h, 3days) or since then (2026-11-20, 2026-11-20T08:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = values::since)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Only tasks submitted longer ago than this (2h, 3days) or before then (2026-11-20, 2026-11-20T08:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) until: Option<DateTime<Utc>>,
    /// Maximum number of entries
    #[arg(long, default_value_t = 50, value_parser = values::number(1..=u32::MAX))]
    pub(crate) limit: u32,
    /// Only tasks submitted before this one: the next page
    #[arg(long, value_name = "TASK")]
    pub(crate) before: Option<IdText>,
    /// Print all columns, whole ids and exact times, however long lines get
    #[arg(long)]
    pub(crate) wide: bool,
}
