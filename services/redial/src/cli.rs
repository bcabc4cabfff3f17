//! The command line.

mod forget;
mod questions;
mod tasks;
mod token;
mod tools;
pub(crate) mod values;
mod webhooks;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand};

use crate::ids::IdText;

pub(crate) use self::{
    forget::ForgetArgs,
    questions::{FilterArgs, HistoryArgs, StatsArgs, StatsBy},
    tasks::{TaskArgs, TasksArgs},
    token::{TokenCommand, TokenCreateArgs, TokenListArgs},
    tools::ToolsCommand,
    webhooks::{CreateWebhookArgs, WebhooksCommand},
};

/// Durable tool calls for LLM agents.
///
/// Start everything on this machine with `redial dev`. Then, in another terminal and the same folder:
///
///   redial call echo '{"hello": "world"}' --wait
///   redial task "What is the weather in Paris?" --agent NAME --wait
#[derive(Parser, Debug)]
#[command(
    version,
    verbatim_doc_comment,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run Postgres, NATS, a dispatcher, a worker and a gateway on this machine
    Dev(Box<DevArgs>),
    /// Run a dispatcher
    Dispatcher,
    /// Run a worker with the tools of a manifest
    Worker,
    /// Run a gateway, which serves the HTTP API
    Gateway,
    /// Migrate the database to this version
    Migrate,
    /// Check that NATS, a dispatcher and Postgres answer; exit code 1 if not
    ///
    /// Exit code 2 if a setting is wrong: an address, a user, a password.
    Health {
        /// Ask only this gateway whether it is ready
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
    },
    /// Submit one tool call
    Call(CallArgs),
    /// Submit the tool calls of a file; a second run submits nothing twice
    ///
    /// A line without a key gets one of the file's path, its text and how many equal lines came before it. So other lines
    /// may be added, removed or moved between two runs, and two equal lines are two calls.
    Submit(SubmitArgs),
    /// Submit one task, which a model works on with tools
    Task(TaskArgs),
    /// Follow a task while it runs; exit code 1 if it fails
    ///
    /// Prints its turns, calls, repairs, feedback, retries and the answer.
    Watch {
        /// The task's id, or its first characters
        task: IdText,
    },
    /// List tasks, newest first
    Tasks(TasksArgs),
    /// Check a model's arguments offline; exit code 1 if a call would not run
    ///
    /// Prints the arguments and the repairs with which the tool would run, or the feedback for the model.
    Check(CheckArgs),
    /// List calls, newest first
    History(Box<HistoryArgs>),
    /// Count calls by tool, class, model, worker or hour
    ///
    /// Prints how many ended and how, retries, corrections, what models cost, and how long calls took from submission to end.
    /// By worker it counts attempts. Hours are whole, in UTC.
    Stats(StatsArgs),
    /// Show everything on record about a task or a call
    ///
    /// Prints its decisions, attempts, errors, retries and the answer.
    Show {
        /// The task's or the call's id, or its first characters
        id: IdText,
        /// Print a task as a Mermaid sequence diagram
        #[arg(long, conflicts_with = "json")]
        mermaid: bool,
    },
    /// Repeat the decisions of a recorded task; exit code 1 if one differs
    Replay(ReplayArgs),
    /// List the tools that workers registered, with their workers and the calls that wait
    Tools {
        /// Print all columns, exact times and whole texts, however long lines get
        #[arg(long)]
        wide: bool,
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
    /// List webhooks, or create, test, rotate, disable, enable or delete one
    Webhooks {
        /// Print whole texts, however long lines get
        #[arg(long)]
        wide: bool,
        #[command(subcommand)]
        command: Option<WebhooksCommand>,
    },
    /// List workers
    Workers {
        /// Include dead workers: no heartbeat for a lease, or for 15 s if leases are shorter
        #[arg(long)]
        all: bool,
        /// Print all columns, exact times and whole texts, however long lines get
        #[arg(long)]
        wide: bool,
    },
    /// List messages that could not be processed, each with the reason
    DeadLetters {
        /// Maximum number of entries
        #[arg(long, default_value_t = 50, value_parser = values::number(1..=u32::MAX))]
        limit: u32,
        /// Print all columns, exact times and whole texts, however long lines get
        #[arg(long)]
        wide: bool,
    },
    /// List what users changed, newest first
    ///
    /// Prints who cancelled, redrove, accepted, forgot or erased what, when, on how many, and how it ended. Submissions are not listed.
    Actions(ActionsArgs),
    /// Cancel a task or a call
    Cancel {
        /// The task's or the call's id, or its first characters
        id: IdText,
    },
    /// Run ended calls again, each as a new call
    ///
    /// Prints the id of each call and that of the new one.
    /// It accepts calls that failed, were cancelled, or ended unknown; not ones that succeeded, were refused or have not ended.
    Redrive(RedriveArgs),
    /// Erase a conversation, or everything of a tenant
    ///
    /// Prints what would be erased, and asks first. Nothing brings it back; docs/OPERATIONS.md says what it does not reach.
    Forget(ForgetArgs),
    /// Create, list and revoke tokens, by which programs come over HTTP
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Write the users and permissions of nats-server from the access file
    ///
    /// Every user and every worker gets an account of its own. All mistakes of the file are told at once.
    NatsConfig(NatsConfigArgs),
    /// Print what a program needs to connect to NATS, for a shell
    ///
    /// In a shell: eval "$(redial env)". Without --user, --worker, --dispatcher or --gateway it is about the `redial dev` of this folder.
    /// Passwords come from the environment variables that the access file names. It also sets up the program `nats`.
    Env(EnvArgs),
    /// List the settings that every command has, and the ways to set them
    ///
    /// With --json a line for each. No values are printed: some are passwords.
    Settings,
    /// Print the version of this program, and that of its messages
    ///
    /// Processes work together if the versions of their messages (the contract) are the same or neighbours.
    Version,
    /// Print a completion script for a shell
    ///
    /// It completes commands, flags, files, and the values of states and error classes; not names of tools, agents or ids.
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct DevArgs {
    /// Folder for the servers' data and logs
    #[arg(long, default_value = crate::dev_folder::DEV_FOLDER, value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Start no worker
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// Start no gateway
    #[arg(long)]
    pub(crate) no_gateway: bool,
    /// Start only Postgres and NATS
    #[arg(long)]
    pub(crate) only_servers: bool,
    /// Memory that Postgres keeps its pages in, such as 512MB [default: a quarter of this machine's, 128MB to 8192MB]
    #[arg(long, value_name = "SIZE", value_parser = values::memory_size)]
    pub(crate) shared_buffers: Option<String>,
    /// Only check the settings and files; start nothing
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// Its arguments as a JSON object; - reads them from standard input
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// Wait for the end and print the result; exit code 1 if the call fails
    #[arg(long)]
    pub(crate) wait: bool,
    /// Idempotency key: a second submission with the same key and content returns the same call
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Conversation that the call belongs to
    #[arg(long)]
    pub(crate) conversation: Option<String>,
    /// Timeout of one attempt, such as 30s [default: the tool's]
    #[arg(long, value_name = "DURATION", value_parser = values::timeout)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Maximum number of attempts [default: the tool's]
    #[arg(long, value_name = "N", value_parser = values::number(1..=1000))]
    pub(crate) max_attempts: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct ActionsArgs {
    /// Only actions of this user
    #[arg(long, value_name = "USER")]
    pub(crate) by: Option<String>,
    /// Only actions of this kind, such as calls.redrive
    #[arg(long, value_name = "VERB")]
    pub(crate) action: Option<String>,
    /// Only actions within this time (2h, 3days) or since then (2026-11-20, 2026-11-20T08:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = values::since)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Maximum number of entries
    #[arg(long, default_value_t = 50, value_parser = values::number(1..=u32::MAX))]
    pub(crate) limit: u32,
    /// Only actions before the one with this number: the next page
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<i64>,
    /// Print all columns and exact times, however long lines get
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("record").required(true))]
pub(crate) struct ReplayArgs {
    /// The task's id, or its first characters
    #[arg(group = "record")]
    pub(crate) task: Option<IdText>,
    /// File with the output of `redial show TASK --json`; needs no server
    #[arg(long, value_name = "FILE", group = "record")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The arguments as the model wrote them; - reads one per line from standard input, each as it is or as a JSON string
    pub(crate) arguments: String,
    /// Tool that the arguments are for
    #[arg(long, value_name = "NAME", required_unless_present = "schema")]
    pub(crate) tool: Option<String>,
    /// Manifest that declares the tool
    #[arg(long, value_name = "FILE", default_value = "tools.toml")]
    pub(crate) tools: PathBuf,
    /// File with a JSON Schema, instead of a tool
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tool", "tools"])]
    pub(crate) schema: Option<PathBuf>,
    /// Make no repairs, like a tool that switches them off
    #[arg(long)]
    pub(crate) no_repairs: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    /// File with one JSON submission per line: {"tool": …, "arguments": {…}}; - reads standard input
    pub(crate) file: PathBuf,
    /// Maximum number of lines in one request
    #[arg(long, default_value_t = 500, value_parser = values::number(1..=1000))]
    pub(crate) batch: u32,
    /// Name that identifies this submission in a second run [default: the file's path]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RedriveArgs {
    /// Ids of calls, or their first characters. A filter matches `unknown` calls, which may have done their work, only with --state unknown
    pub(crate) calls: Vec<IdText>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Only count the calls that would run again
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Debug)]
pub(crate) struct NatsConfigArgs {
    /// File that says who may do what
    #[arg(long, value_name = "FILE", default_value = "access.toml")]
    pub(crate) access: PathBuf,
    /// Only check the access file; with --output also that the output is up to date, else exit code 1
    #[arg(long)]
    pub(crate) check: bool,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct EnvArgs {
    /// A user of the access file
    #[arg(long, value_name = "TENANT.USER", group = "who")]
    pub(crate) user: Option<String>,
    /// A worker of the access file
    #[arg(long, value_name = "NAME", group = "who")]
    pub(crate) worker: Option<String>,
    /// The dispatchers' user
    #[arg(long, group = "who")]
    pub(crate) dispatcher: bool,
    /// The gateways' user
    #[arg(long, group = "who")]
    pub(crate) gateway: bool,
    /// File that says who may do what
    #[arg(long, value_name = "FILE", default_value = "access.toml")]
    pub(crate) access: PathBuf,
    /// Address of nats-server, such as nats.example.com:4222 or tls://nats.example.com:4222 [default: that of the setting nats_url, or 127.0.0.1:4222]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) server: Option<String>,
}

/// Reads an argument, or all of standard input for `-`.
pub(crate) fn argument_or_stdin(argument: String) -> std::io::Result<String> {
    if argument == "-" { std::io::read_to_string(std::io::stdin()) } else { Ok(argument) }
}
