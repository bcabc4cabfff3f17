//! The settings as flags, with what their help says.

use std::path::PathBuf;

use clap::Args;

/// Settings as flags. Each can also be set in the environment as `REDIAL_NAME` and in the file as `name`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Settings (also REDIAL_<NAME> in the environment, <name> in redial.toml)")]
pub(crate) struct Flags {
    /// Settings file [default: redial.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// NATS server: nats://user:password@host:port [default: that of `redial dev` in this folder]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) nats_url: Option<String>,
    /// NATS credentials file, for JWT authentication
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) nats_credentials: Option<String>,
    /// Prefix of reply subjects, that of the NATS user [default: _INBOX]
    #[arg(long, global = true, value_name = "PREFIX")]
    pub(crate) nats_inbox_prefix: Option<String>,
    /// Tenant whose calls and tasks are submitted and changed [default: default]; if set, lists show only this tenant
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// User in whose name requests are sent, as the NATS server permits [default: local]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Postgres database: postgres://user:password@host:port/name, several host:port with commas [default: that of `redial dev` in this folder]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Log filter, such as info or redial=debug [default: info for services, warn for commands]
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Log format: auto (text on a terminal, else json), text or json [default: auto]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Settings of a dispatcher as flags.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DispatcherFlags {
    /// How long a worker holds a call without a heartbeat, such as 15s; 300ms to 1h [default: 15s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) lease: Option<String>,
    /// Delete calls and tasks that ended longer ago than this, such as 30days; 1m or more [default: never]
    #[arg(long, value_name = "DURATION")]
    pub(crate) retention: Option<String>,
    /// File that declares agents [default: agents.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<String>,
    /// Let any worker serve any tool of its pools, and change it, without `redial tools accept` [default: false; of redial dev: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) accept_tools: Option<String>,
    /// Servers of the NATS cluster that keep each stream: 1, 3 or 5; all dispatchers keep to it from then on [default: as it was, and 1 at first]
    #[arg(long, value_name = "N")]
    pub(crate) nats_replicas: Option<String>,
    /// The most bytes of the arguments or of the result of a call, such as 4MiB; 64KiB to 16MiB [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_payload: Option<String>,
    /// Connections to Postgres, a number [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) database_connections: Option<String>,
}

/// The access file as a flag: dispatchers and gateways read it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AccessFlags {
    /// File that says what tenants and their users may do [default: none; every tenant may use everything]
    #[arg(long, value_name = "FILE")]
    pub(crate) access: Option<String>,
}

/// Settings of a worker as flags.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WorkerFlags {
    /// Tool manifest [default: tools.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<String>,
    /// File that declares models; only workers with models need API keys [default: models.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) models: Option<String>,
    /// Calls that run at the same time in each pool and for each model, a number [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<String>,
    /// Programs that command tools run at the same time, in all pools together [default: two for each core]
    #[arg(long, value_name = "N")]
    pub(crate) command_slots: Option<String>,
    /// User that command tools run as, a name or a number; needed if the worker runs as root [default: the worker's own; of redial dev as root: nobody]
    #[arg(long, value_name = "USER")]
    pub(crate) command_user: Option<String>,
    /// The worker's identity, which its credentials are for, and the first part of its id [default: worker]
    #[arg(long, value_name = "NAME")]
    pub(crate) worker_name: Option<String>,
    /// The pools of the worker's credentials, separated by commas [default: none named; only a NATS server without permissions accepts that]
    #[arg(long, value_name = "POOLS")]
    pub(crate) worker_pools: Option<String>,
    /// Hosts, addresses and networks that webhooks may be delivered to besides the public internet, separated by commas; only a worker with REDIAL_WEBHOOK_KEY delivers [default: none]
    #[arg(long, value_name = "LIST")]
    pub(crate) webhook_allow: Option<String>,
    /// How long running calls may continue after SIGTERM or Ctrl-C, such as 30s [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) drain_grace: Option<String>,
}

/// Settings of a gateway as flags.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GatewayFlags {
    /// Address that the gateway listens on for HTTP; port 0 takes a free one [default: 127.0.0.1:8700]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Names that requests may be addressed to (header Host), separated by commas [default: this machine's loopback if it listens there, else any]
    #[arg(long, value_name = "NAMES")]
    pub(crate) gateway_hosts: Option<String>,
    /// Requests per second of one token, a number [default: 1000]
    #[arg(long, value_name = "N")]
    pub(crate) gateway_rate: Option<String>,
    /// Streams and waiting requests of one token at a time, a number [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) gateway_streams: Option<String>,
    /// Connections of the gateway to Postgres, a number [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) gateway_connections: Option<String>,
    /// Let requests without a token do everything, as the tenant and user of the settings; only on loopback [default: false; of redial dev: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) without_token: Option<String>,
}
