//! Who may do what in a run: two tenants, two identities of workers, and a hostile user.

use anyhow::Context as _;
use redial_access::{Access, server_configuration};
use redial_proto::{
    Tenant, User, WorkerIdentity,
    subjects::{DISPATCHER_INBOX, user_inbox, worker_inbox},
};
use redial_queue::{Queue, QueueConfig};

/// The tenants of the load, each with the user that submits it.
pub(crate) const TENANTS: [(&str, &str); 2] = [("acme", "alice"), ("globex", "bob")];
/// The user of what faults submit, of a third tenant.
pub(crate) const OF_FAULTS: (&str, &str) = ("default", "local");
/// The hostile user, of the second tenant.
pub(crate) const MALLORY: (&str, &str) = ("globex", "mallory");

/// Every password is the name of its user: the server listens on this machine, and lives for minutes.
const ACCESS: &str = r#"
[dispatcher]
password = "dispatcher"
[tenants.default.users]
local = { roles = ["submit", "inline", "read", "operate"], password = "default.local" }
[tenants.acme.users]
alice = { roles = ["submit", "inline", "read", "operate"], password = "acme.alice" }
[tenants.globex.users]
bob = { roles = ["submit", "inline", "read", "operate"], password = "globex.bob" }
mallory = { roles = ["submit", "inline", "read", "operate"], password = "globex.mallory" }
[workers]
tools = { pools = ["default"], password = "worker.tools" }
models = { pools = ["models"], password = "worker.models" }
"#;

/// Returns what nats-server must know of them. The run's own user may do everything in the account of the dispatchers.
pub(crate) fn accounts() -> anyhow::Result<String> {
    let access = Access::read("access.toml", ACCESS).map_err(|wrong| anyhow::anyhow!(wrong.join("\n")))?;
    let text = server_configuration(&access, "access.toml");
    // The dispatchers' account comes first.
    let (before, after) = text.split_once("users: [\n").context("the configuration has users")?;
    let own = "      { user: redial, password: $REDIAL_PASSWORD }\n";
    Ok(format!("{before}users: [\n{own}{after}"))
}

/// A login, and the prefix of the only inbox that it may use.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    name: String,
    pub(crate) inbox: String,
}

impl Login {
    pub(crate) fn dispatcher() -> Self {
        Self { name: "dispatcher".to_owned(), inbox: DISPATCHER_INBOX.to_owned() }
    }

    pub(crate) fn worker(identity: &str) -> Self {
        Self { name: format!("worker.{identity}"), inbox: worker_inbox(&WorkerIdentity::of_name(identity)) }
    }

    pub(crate) fn user(tenant: &Tenant, user: &User) -> Self {
        Self { name: format!("{tenant}.{user}"), inbox: user_inbox(tenant, user) }
    }

    /// Returns the URLs of servers, with commas, with this login instead of the one in them.
    pub(crate) fn url(&self, servers: &str) -> String {
        let with_login = |server: &str| {
            let address = server.rsplit_once('@').map_or(server, |(_, address)| address);
            format!("nats://{0}:{0}@{address}", self.name)
        };
        servers.split(',').map(with_login).collect::<Vec<_>>().join(",")
    }
}

pub(crate) fn mallory() -> anyhow::Result<Login> {
    Ok(Login::user(&named(MALLORY.0)?, &named(MALLORY.1)?))
}

/// Connects a correct client of a user.
pub(crate) async fn connect(server: &str, (tenant, user): (&str, &str)) -> anyhow::Result<Queue> {
    let (tenant, user): (Tenant, User) = (named(tenant)?, named(user)?);
    let login = Login::user(&tenant, &user);
    let (url, name) = (login.url(server), format!("chaos-{tenant}"));
    let config = QueueConfig { url, name, inbox_prefix: Some(login.inbox), tenant, user, ..QueueConfig::default() };
    Ok(Queue::connect(&config).await?)
}

/// Reads a tenant or a user by its name.
pub(crate) fn named<T: std::str::FromStr>(name: &str) -> anyhow::Result<T> {
    name.parse().map_err(|_| anyhow::anyhow!("{name:?} is no name"))
}
