//! What is asked of the record: which calls, and which figures.

use chrono::{DateTime, Utc};
use clap::Args;
use redial_proto::{CallState, ErrorClass};
use redial_store::audit::{Filter, json_search::Condition};

use super::values;
use crate::ids::IdText;

#[derive(Args, Debug, Default)]
pub(crate) struct FilterArgs {
    /// Only calls of this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only calls in this state
    #[arg(long, value_parser = values::call_state())]
    pub(crate) state: Option<CallState>,
    /// Only calls that ended with this error class
    #[arg(long, value_parser = values::error_class())]
    pub(crate) class: Option<ErrorClass>,
    /// Only calls submitted within this time (2h, 3days) or since then (2026-11-20, 2026-11-20T08:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = values::since)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Only calls submitted longer ago than this (2h, 3days) or before then (2026-11-20, 2026-11-20T08:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) until: Option<DateTime<Utc>>,
    /// Only calls of this conversation
    #[arg(long)]
    pub(crate) conversation: Option<String>,
    /// Only the call with this idempotency key
    #[arg(long)]
    pub(crate) key: Option<String>,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only calls of this task: tool calls and model turns
    #[arg(long)]
    pub(crate) task: Option<IdText>,
    /// Only turns of this model
    #[arg(long, value_name = "NAME", conflicts_with = "tool")]
    pub(crate) model: Option<String>,
    /// Only calls of which this worker ran an attempt, or runs one
    #[arg(long, value_name = "ID")]
    pub(crate) worker: Option<String>,
    /// Only calls with this value in their arguments: /city=Paris, /items/0/id=17; may be repeated
    ///
    /// This and the next two look at the newest 100,000 calls and say how far they came; --all looks at all of them.
    #[arg(long, value_name = "POINTER=VALUE")]
    pub(crate) argument: Vec<Condition>,
    /// Only calls with this value in their result; may be repeated
    #[arg(long, value_name = "POINTER=VALUE")]
    pub(crate) output: Vec<Condition>,
    /// Only calls with this text in their arguments or their result
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,
    /// List those that took longest, of the newest 100,000 calls that match; --all: of all
    #[arg(long)]
    pub(crate) slowest: bool,
    /// Maximum number of entries [default: 50; with --all no maximum, except for --slowest]
    #[arg(long, value_name = "N", value_parser = values::number(1..=u32::MAX))]
    pub(crate) limit: Option<u32>,
    /// List all that match, and look at all calls
    #[arg(long)]
    pub(crate) all: bool,
    /// Only calls submitted before this one: the next page
    #[arg(long, value_name = "CALL")]
    pub(crate) before: Option<IdText>,
    /// Print all columns, whole ids and exact times, however long lines get
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print CSV with arguments, results and attempts; --json prints a line of JSON for each call with the same
    #[arg(long)]
    pub(crate) csv: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// What to group by
    #[arg(long, value_enum, default_value_t = StatsBy::Tool)]
    pub(crate) by: StatsBy,
    /// Only calls that ended within this time (2h, 3days) or since then (2026-11-20, 2026-11-20T08:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = values::since, default_value = "24h")]
    pub(crate) since: DateTime<Utc>,
    /// Only calls that ended before then [default: now]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) until: Option<DateTime<Utc>>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only turns of this model
    #[arg(long, value_name = "NAME", conflicts_with = "tool")]
    pub(crate) model: Option<String>,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// What figures are grouped by.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum StatsBy {
    /// Tools; models as model-NAME
    Tool,
    /// Error classes, and how calls ended that have none
    Class,
    /// Models
    Model,
    /// Workers
    Worker,
    /// Hours, in UTC
    Hour,
}

impl From<FilterArgs> for Filter {
    fn from(args: FilterArgs) -> Self {
        let FilterArgs { tool, state, class, since, until, conversation, key } = args;
        Self { tool, state, class, since, until, conversation, key, ..Self::default() }
    }
}
