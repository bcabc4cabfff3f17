//! Reads and checks all settings at the start. A flag wins over an environment variable, that over the file, and that over
//! a running `redial dev` in this folder.

mod file;
mod flags;
mod gateway;
mod problems;

use std::{
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use humantime::format_duration;
use redial_dispatcher::DispatcherConfig;
use redial_proto::{ApiError, Code, Tenant, User, limits, turn};
use redial_queue::QueueConfig;
use redial_telemetry::{LogFileConfig, LogFormat, TelemetryConfig};
use redial_worker::{Allowed, AllowedError, CommandUser, WebhookKey, WorkerConfig};

use self::file::SettingsFile;
pub(crate) use self::{
    flags::{Flags, common, with_flags},
    problems::Problems,
};
use crate::dev_folder::{self, DEV_FOLDER, DevAddresses, DevState};

/// The variable with the key that the secrets of webhooks are derived from.
const WEBHOOK_KEY: &str = "REDIAL_WEBHOOK_KEY";

#[derive(Clone)]
pub(crate) struct Settings {
    flags: Flags,
    file: SettingsFile,
    problems: Problems,
    dev: DevState,
}

struct Found {
    value: String,
    source: String,
}

impl Settings {
    /// Reads the file and looks for a `redial dev` in this folder. What is wrong in the file is told by [`Settings::check`].
    pub(crate) fn read(flags: &Flags) -> Self {
        let mut problems = Problems::default();
        let file = settings_path(flags).map(|path| SettingsFile::read(&path, &mut problems));
        let dev = dev_folder::state(Path::new(DEV_FOLDER));
        Self { flags: flags.clone(), file: file.unwrap_or_default(), problems, dev }
    }

    pub(crate) fn problems(&self) -> Problems {
        self.problems.clone()
    }

    /// Fails if the settings file is wrong.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        self.problems().into_result()
    }

    pub(crate) fn json(&self) -> bool {
        self.flags.json
    }

    fn find(&self, name: &str) -> Option<Found> {
        debug_assert!(flags::names().any(|known| known == name), "{name} is no setting");
        if let Some(value) = self.flags.given.get(name) {
            return Some(Found { value: value.clone(), source: format!("flag --{}", name.replace('_', "-")) });
        }
        let variable = format!("REDIAL_{}", name.to_uppercase());
        let value = std::env::var_os(&variable).map(|value| value.to_string_lossy().into_owned());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            return Some(Found { value, source: format!("environment variable {variable}") });
        }
        let (value, source) = self.file.get(name)?;
        Some(Found { value, source })
    }

    fn text(&self, name: &str) -> Option<String> {
        self.find(name).map(|found| found.value)
    }

    fn parse<T>(&self, name: &str, allowed: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        let Some(Found { value, source }) = self.find(name) else { return Ok(None) };
        match parse(&value) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(invalid(format!("{name} is {value:?} ({source}); allowed: {allowed}"))),
        }
    }

    fn number(&self, name: &str, within: &RangeInclusive<u32>) -> Result<Option<u32>, ApiError> {
        let allowed = format!("{} to {}", within.start(), within.end());
        self.parse(name, &allowed, |text| text.parse().ok().filter(|number| within.contains(number)))
    }

    /// Returns the `redial dev` that runs in this folder.
    fn dev(&self) -> Option<&DevAddresses> {
        match &self.dev {
            DevState::Running(addresses) => addresses.as_ref(),
            DevState::None | DevState::Stale(_) => None,
        }
    }

    /// Configures NATS, under this connection name.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueConfig, ApiError> {
        let dev = self.dev().map(|dev| dev.nats_url.clone());
        let Some(url) = self.text("nats_url").or(dev) else {
            return Err(self.unset("nats_url", "nats://user:password@host:port"));
        };
        Ok(QueueConfig {
            url,
            name: name.to_owned(),
            credentials: self.text("nats_credentials").map(PathBuf::from),
            inbox_prefix: self.text("nats_inbox_prefix"),
            tenant: self.tenant()?,
            user: self.user()?,
            contract: None,
        })
    }

    /// Returns the tenant whose calls and tasks are submitted and changed.
    pub(crate) fn tenant(&self) -> Result<Tenant, ApiError> {
        Ok(self.name("tenant")?.unwrap_or_default())
    }

    /// Returns the user in whose name requests are sent.
    pub(crate) fn user(&self) -> Result<User, ApiError> {
        Ok(self.name("user")?.unwrap_or_default())
    }

    /// Returns the tenant to which lists are limited; all tenants if none is set.
    pub(crate) fn only_tenant(&self) -> Result<Option<String>, ApiError> {
        let tenant: Option<Tenant> = self.name("tenant")?;
        Ok(tenant.map(|tenant| tenant.to_string()))
    }

    fn name<T: FromStr<Err = String>>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(Found { value, source }) = self.find(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|why| invalid(format!("{why} ({source})")))
    }

    pub(crate) fn nats_url_if_set(&self) -> Option<String> {
        self.text("nats_url")
    }

    /// Returns the address of NATS of the `redial dev` that runs in this folder.
    pub(crate) fn dev_nats_url(&self) -> Option<String> {
        self.dev().map(|dev| dev.nats_url.clone())
    }

    pub(crate) fn database_url(&self) -> Result<String, ApiError> {
        let dev = self.dev().map(|dev| dev.database_url.clone());
        let url = self.text("database_url").or(dev);
        url.ok_or_else(|| self.unset("database_url", "postgres://user:password@host:port/name"))
    }

    /// Returns the address if it is set or a `redial dev` runs here.
    pub(crate) fn database_url_if_set(&self) -> Option<String> {
        self.database_url().ok()
    }

    pub(crate) fn dispatcher(&self, queue: QueueConfig, database_url: String) -> Result<DispatcherConfig, ApiError> {
        let mut config = DispatcherConfig::new(queue, database_url);
        let mut problems = Problems::default();
        let connections = self.number("database_connections", &DispatcherConfig::CONNECTIONS);
        config.connections = problems.keep_or(connections, config.connections);
        let within = DispatcherConfig::LEASE;
        let allowed = format!("{} to {}", format_duration(*within.start()), format_duration(*within.end()));
        let lease = self.parse("lease", &allowed, |text| duration(text).filter(|lease| within.contains(lease)));
        config.lease = problems.keep_or(lease, config.lease);
        config.agents = self.agents();
        config.access = self.access();
        let accept = self.parse("accept_tools", "true or false", |text| text.parse().ok());
        config.accept_tools = problems.keep_or(accept, config.accept_tools);
        let replicas = self.parse("nats_replicas", "1, 3 or 5", |text| {
            text.parse().ok().filter(|replicas| DispatcherConfig::NATS_REPLICAS.contains(replicas))
        });
        config.nats_replicas = problems.keep(replicas).flatten();
        let most = self.parse("max_payload", "64KiB to 16MiB, with the unit KiB or MiB", |text| {
            bytes(text).filter(|bytes| limits::PAYLOADS.contains(bytes))
        });
        config.max_payload = problems.keep_or(most, config.max_payload);
        let within = DispatcherConfig::RETENTION;
        let allowed =
            format!("{} to {}, such as 30days", format_duration(*within.start()), format_duration(*within.end()));
        let retention = self.parse("retention", &allowed, |text| duration(text).filter(|age| within.contains(age)));
        config.retention = problems.keep(retention).flatten();
        config.webhook_key = problems.keep(Self::webhook_key()).flatten();
        problems.into_result().map(|()| config)
    }

    /// Returns what the secrets of webhooks are derived from. It is a secret itself, so only the environment has it.
    pub(crate) fn webhook_key() -> Result<Option<WebhookKey>, ApiError> {
        let text = variable(WEBHOOK_KEY).filter(|text| !text.is_empty());
        let wrong = |error| invalid(format!("environment variable {WEBHOOK_KEY}: {error}"));
        text.map(|text| WebhookKey::new(&text).map_err(wrong)).transpose()
    }

    /// Returns where webhooks may be delivered besides the public internet.
    pub(crate) fn webhook_allow(&self) -> Result<Option<Allowed>, ApiError> {
        let Some(Found { value, source }) = self.find("webhook_allow") else {
            return Ok(None);
        };
        let wrong = |why: AllowedError| invalid(format!("webhook_allow: {why} ({source})"));
        value.parse().map(Some).map_err(wrong)
    }

    pub(crate) fn worker(&self, queue: QueueConfig) -> Result<WorkerConfig, ApiError> {
        // Not the host's name, which is another one in each container: a name is an identity.
        let name = self.text("worker_name").unwrap_or_else(|| "worker".to_owned());
        let host = Some(redial_proto::limits::shorten(&host_name(), redial_proto::limits::MAX_KEY));
        let mut config = WorkerConfig { nats: queue, host, ..WorkerConfig::new("", name) };
        let mut problems = Problems::default();
        let slots = self.number("slots", &WorkerConfig::SLOTS);
        config.slots = problems.keep_or(slots, config.slots);
        let command_slots = self.number("command_slots", &WorkerConfig::SLOTS);
        config.command_slots = problems.keep_or(command_slots, config.command_slots);
        if let Some(Found { value, source }) = self.find("command_user") {
            let user = CommandUser::parse(&value);
            let wrong = |why: String| invalid(format!("command_user is {value:?} ({source}); {why}"));
            config.command_user = problems.keep(user.map_err(wrong)).unwrap_or_default();
        }
        let grace = self.parse("drain_grace", "a duration such as 30s", duration);
        config.drain_grace = problems.keep_or(grace, config.drain_grace);
        config.pools = problems.keep(self.pools()).unwrap_or_default();
        problems.keep(Self::webhook_key());
        problems.keep(self.webhook_allow());
        problems.into_result().map(|()| config)
    }

    fn pools(&self) -> Result<Vec<String>, ApiError> {
        let Some(Found { value, source }) = self.find("worker_pools") else {
            return Ok(Vec::new());
        };
        let pools: Vec<String> = value.split(',').map(|pool| pool.trim().to_owned()).collect();
        let checked = redial_proto::subjects::pools_token(pools.iter().map(String::as_str));
        checked.map(|_| pools).map_err(|why| invalid(format!("worker_pools: {why} ({source})")))
    }

    /// Returns the settings of `redial dev`, and the user that it chose: as root, programs run as a user without rights
    /// unless one is set.
    pub(crate) fn of_dev(&self) -> (Self, Option<String>) {
        let mut settings = self.clone();
        match CommandUser::unprivileged() {
            Some(CommandUser::Other(account)) if !self.is_set("command_user") && CommandUser::Own.is_missing() => {
                settings.flags.given.insert("command_user", account.name.clone());
                (settings, Some(account.name))
            }
            _ => (settings, None),
        }
    }

    pub(crate) fn manifest(&self) -> Option<PathBuf> {
        self.path("tools")
    }

    /// Returns the file of models of a worker with these pools, if there is one. A file that only lies in the folder is
    /// not the business of a worker that asks no models.
    pub(crate) fn models(&self, pools: &[String]) -> Option<PathBuf> {
        let file = self.path("models")?;
        let asks = pools.is_empty() || pools.iter().any(|pool| pool == turn::POOL) || self.is_set("models");
        asks.then_some(file)
    }

    pub(crate) fn agents(&self) -> Option<PathBuf> {
        self.path("agents")
    }

    pub(crate) fn access(&self) -> Option<PathBuf> {
        self.text("access").map(PathBuf::from)
    }

    /// Returns a file: as set, else `<name>.toml` if it exists.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let set = self.text(name).map(PathBuf::from);
        set.or_else(|| Some(PathBuf::from(format!("{name}.toml"))).filter(|file| file.exists()))
    }

    /// Starts the logs of a service and, where the standard OTEL variables ask for it, traces and metrics.
    pub(crate) fn telemetry(&self, service: &'static str, filter: &str) -> anyhow::Result<redial_telemetry::Telemetry> {
        let telemetry = start(&self.telemetry_config(service, filter)?)?;
        for setting in ["nats_url", "database_url"] {
            if self.flags.given.get(setting).is_some_and(|url| url.contains('@')) {
                let variable = format!("REDIAL_{}", setting.to_uppercase());
                tracing::warn!(
                    variable,
                    "Every process of this machine can read the password on the command line; set the variable instead"
                );
            }
        }
        Ok(telemetry)
    }

    /// Does the same for a command: its warnings are text even if they go to a file, because its user reads them.
    pub(crate) fn command_telemetry(&self) -> anyhow::Result<redial_telemetry::Telemetry> {
        // Why a connection failed is told once, by the command.
        let mut config = self.telemetry_config("redial-cli", "warn,async_nats::connector=off")?;
        if self.find("log_format").is_none() {
            config.format = LogFormat::Text;
        }
        start(&config)
    }

    /// Starts the logs of `redial dev`: to a file, and only warnings to the terminal, unless the user asks for more.
    pub(crate) fn dev_telemetry(&self, file: PathBuf) -> anyhow::Result<redial_telemetry::Telemetry> {
        let mut config = self.telemetry_config("redial-dev", "warn")?;
        let asked = self.text("log");
        config.file = Some(LogFileConfig { path: file, filter: asked.unwrap_or_else(|| "info".to_owned()) });
        start(&config)
    }

    /// Checks the settings of logs.
    pub(crate) fn telemetry_config(&self, service: &'static str, filter: &str) -> Result<TelemetryConfig, ApiError> {
        let format: Option<LogFormat> = self.parse("log_format", "auto, text, json", |text| text.parse().ok())?;
        let mut config = TelemetryConfig::new(service, format!("{}-{}", host_name(), std::process::id()));
        config.format = format.unwrap_or(config.format);
        let set = self.parse("log", redial_telemetry::ALLOWED_FILTERS, |text| {
            redial_telemetry::is_filter(text).then(|| text.to_owned())
        });
        config.filter = set?.unwrap_or_else(|| filter.to_owned());
        Ok(config)
    }

    fn unset(&self, name: &str, form: &str) -> ApiError {
        let (flag, variable) = (name.replace('_', "-"), name.to_uppercase());
        let here = match &self.dev {
            DevState::None => "no `redial dev` runs in this folder".to_owned(),
            DevState::Running(_) => "the `redial dev` in this folder is still starting; try again, or".to_owned(),
            DevState::Stale(addresses) => format!(
                "the `redial dev` of this folder ({}) has ended without cleaning up: start it again, or",
                addresses.who(chrono::Utc::now())
            ),
        };
        let here = if here.ends_with("or") { here } else { format!("{here}; start one, or") };
        invalid(format!(
            "{name} is not set and {here} set --{flag} or REDIAL_{variable}, or {name} in redial.toml, to {form}"
        ))
    }
}

/// Returns the value of an environment variable, if it is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn start(config: &TelemetryConfig) -> anyhow::Result<redial_telemetry::Telemetry> {
    redial_telemetry::init(config).map_err(|error| invalid(error.to_string()).into())
}

/// Returns the settings file: as set, else `redial.toml` if it exists.
fn settings_path(flags: &Flags) -> Option<PathBuf> {
    let variable = std::env::var_os("REDIAL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let default = PathBuf::from("redial.toml");
    flags.given.get("config").map(PathBuf::from).or(variable).or_else(|| default.exists().then_some(default))
}

/// Reads a duration such as `500ms`, `15s` or `1h 30m`.
fn duration(text: &str) -> Option<Duration> {
    redial_proto::duration::parse(text).ok()
}

/// Reads bytes, or a number of KiB or MiB.
fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = [("KiB", 1024), ("MiB", 1024 * 1024), ("", 1)]
        .into_iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))?;
    number.trim_end().parse::<usize>().ok()?.checked_mul(unit)
}

fn host_name() -> String {
    let name = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "worker".to_owned() } else { name.to_owned() }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(Code::InvalidConfiguration, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_defaults_of_the_roles() {
        let dispatcher = DispatcherConfig::new(QueueConfig::default(), "");
        let worker = WorkerConfig::default();
        let gateway = redial_gateway::GatewayConfig::new(QueueConfig::default(), "");
        let dev = with_flags(clap::Command::new("redial").subcommand(clap::Command::new("dev")));
        let dev = dev.find_subcommand("dev").unwrap();
        for (name, default) in [
            ("listen", gateway.listen.to_string()),
            ("gateway_rate", gateway.rate.to_string()),
            ("gateway_streams", gateway.streams.to_string()),
            ("gateway_connections", gateway.connections.to_string()),
            ("database_connections", dispatcher.connections.to_string()),
            ("lease", format_duration(dispatcher.lease).to_string()),
            ("slots", worker.slots.to_string()),
            ("drain_grace", format_duration(worker.drain_grace).to_string()),
        ] {
            let flag = dev.get_arguments().find(|flag| flag.get_id() == name).unwrap();
            let help = flag.get_help().unwrap().to_string();
            assert!(help.ends_with(&format!("[default: {default}]")), "{name}: {help}");
        }
    }
}
