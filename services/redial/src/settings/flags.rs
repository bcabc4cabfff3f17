//! The settings: one row has the flag, the variable, the name in the file, and the help.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command};

/// The commands whose flags the settings of a role are; of every command if there are none.
type Roles = &'static [&'static str];
const EVERY: Roles = &[];
const DISPATCHER: Roles = &["dev", "dispatcher"];
const ACCESS: Roles = &["dev", "dispatcher", "gateway"];
const WORKER: Roles = &["dev", "worker"];
const GATEWAY: Roles = &["dev", "gateway"];

/// Roles, name, what stands for the value, and help. A setting is the flag `--a-name`, in the environment `REDIAL_A_NAME`, and
/// `a_name` in the file.
#[rustfmt::skip]
const SETTINGS: &[(Roles, &str, &str, &str)] = &[
    (EVERY, "config", "FILE", "Settings file [default: redial.toml, if it exists]"),
    (EVERY, "nats_url", "URL", "NATS server: nats://user:password@host:port [default: that of `redial dev` in this folder]"),
    (EVERY, "nats_credentials", "FILE", "NATS credentials file, for JWT authentication"),
    (EVERY, "nats_inbox_prefix", "PREFIX", "Prefix of reply subjects, that of the NATS user [default: _INBOX]"),
    (EVERY, "tenant", "NAME", "Tenant whose calls and tasks are submitted and changed [default: default]; if set, lists show only this tenant"),
    (EVERY, "user", "NAME", "User in whose name requests are sent, as the NATS server permits [default: local]"),
    (EVERY, "database_url", "URL", "Postgres database: postgres://user:password@host:port/name, several host:port with commas [default: that of `redial dev` in this folder]"),
    (EVERY, "log", "FILTER", "Log filter, such as info or redial=debug [default: info for services, warn for commands]"),
    (EVERY, "log_format", "FORMAT", "Log format: auto (text on a terminal, else json), text or json [default: auto]"),
    (DISPATCHER, "lease", "DURATION", "How long a worker holds a call without a heartbeat, such as 15s; 300ms to 1h [default: 15s]"),
    (DISPATCHER, "retention", "DURATION", "Delete calls and tasks that ended longer ago than this, such as 30days; 1m to 100years [default: never]"),
    (DISPATCHER, "agents", "FILE", "File that declares agents [default: agents.toml, if it exists]"),
    (DISPATCHER, "accept_tools", "BOOL", "Let any worker serve any tool of its pools, and change it, without `redial tools accept` [default: false; of redial dev: true]"),
    (DISPATCHER, "nats_replicas", "N", "Servers of the NATS cluster that keep each stream: 1, 3 or 5; all dispatchers keep to it from then on [default: as it was, and 1 at first]"),
    (DISPATCHER, "max_payload", "SIZE", "The most bytes of the arguments or of the result of a call, such as 4MiB; 64KiB to 16MiB [default: 16MiB]"),
    (DISPATCHER, "database_connections", "N", "Connections to Postgres, a number [default: 16]"),
    (ACCESS, "access", "FILE", "File that says what tenants and their users may do [default: none; every tenant may use everything]"),
    (WORKER, "tools", "FILE", "Tool manifest [default: tools.toml, if it exists]"),
    (WORKER, "models", "FILE", "File that declares models; only workers with models need API keys [default: models.toml, if it exists]"),
    (WORKER, "slots", "N", "Calls that run at the same time in each pool and for each model, a number [default: 64]"),
    (WORKER, "command_slots", "N", "Programs that command tools run at the same time, in all pools together [default: two for each core]"),
    (WORKER, "command_user", "USER", "User that command tools run as, a name or a number; needed if the worker runs as root [default: the worker's own; of redial dev as root: nobody]"),
    (WORKER, "worker_name", "NAME", "The worker's identity, which its credentials are for, and the first part of its id [default: worker]"),
    (WORKER, "worker_pools", "POOLS", "The pools of the worker's credentials, separated by commas [default: none named; only a NATS server without permissions accepts that]"),
    (WORKER, "webhook_allow", "LIST", "Hosts, addresses and networks that webhooks may be delivered to besides the public internet, separated by commas; only a worker with REDIAL_WEBHOOK_KEY delivers [default: none]"),
    (WORKER, "drain_grace", "DURATION", "How long running calls may continue after SIGTERM or Ctrl-C, such as 30s [default: 30s]"),
    (GATEWAY, "listen", "HOST:PORT", "Address that the gateway listens on for HTTP; port 0 takes a free one [default: 127.0.0.1:8700]"),
    (GATEWAY, "gateway_hosts", "NAMES", "Names that requests may be addressed to (header Host), separated by commas [default: this machine's loopback if it listens there, else any]"),
    (GATEWAY, "gateway_rate", "N", "Requests per second of one tenant, a number [default: 1000]"),
    (GATEWAY, "gateway_streams", "N", "Streams and waiting requests of one tenant at a time, a number [default: 10000]"),
    (GATEWAY, "gateway_connections", "N", "Connections of the gateway to Postgres, a number [default: 8]"),
    (GATEWAY, "without_token", "BOOL", "Let requests without a token do everything, as the tenant and user of the settings; only on loopback [default: false; of redial dev: true]"),
    (GATEWAY, "access_log", "BOOL", "Write a line for each request into the log: its id, tenant, token's id, route, status and time [default: false]"),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) json: bool,
    /// By name.
    pub(super) given: BTreeMap<&'static str, String>,
}

impl Flags {
    pub(crate) fn of(found: &ArgMatches) -> Self {
        let (command, found) = found.subcommand().unwrap_or(("", found));
        let rows = SETTINGS.iter().filter(|(roles, ..)| roles.is_empty() || roles.contains(&command));
        let given = rows.filter_map(|(_, name, ..)| Some((*name, found.get_one::<String>(name)?.clone())));
        Self { json: found.get_flag("json"), given: given.collect() }
    }
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(_, name, ..)| *name)
}

/// Returns the flags of every command.
pub(crate) fn common() -> impl Iterator<Item = Arg> {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text");
    let settings = SETTINGS.iter().filter(|(roles, ..)| roles.is_empty()).map(flag);
    settings.chain([json]).map(|flag| flag.global(true).hide_short_help(true).hide_long_help(true))
}

/// Adds the flags of all settings. Those of every command are in the help of none.
pub(crate) fn with_flags(command: Command) -> Command {
    command.args(common()).mut_subcommands(|command| {
        let own = SETTINGS.iter().filter(|(roles, ..)| roles.contains(&command.get_name())).map(flag);
        let own: Vec<Arg> = own.collect();
        command.args(own)
    })
}

fn flag((_, name, value, help): &(Roles, &'static str, &'static str, &'static str)) -> Arg {
    let flag = Arg::new(*name).long(name.replace('_', "-")).value_name(*value).help(*help);
    if *value == "BOOL" { flag.num_args(0..=1).default_missing_value("true") } else { flag }
}
