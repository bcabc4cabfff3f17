//! A real nats-server with `deploy/nats.conf`, and its log.

use std::{path::PathBuf, process::Stdio, time::Duration};

use redial_queue::{Queue, QueueConfig, QueueError};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

/// A role, its password (quoted as in `deploy/nats.conf`, where 12e4 would be a number) and its inbox prefix.
const ROLES: [(&str, &str); 3] = [("dispatcher", "12e4"), ("worker", "secret"), ("client", "0x1f#{}")];

pub(crate) struct Server {
    address: String,
    log: watch::Receiver<String>,
    _child: Child,
    _store: tempfile::TempDir,
}

impl Server {
    /// Starts the server on a free port with that file.
    pub(crate) async fn start() -> Self {
        let store = tempfile::tempdir().unwrap();
        let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/nats.conf");
        let mut command = Command::new(program());
        command.args(["--config", config, "--addr", "127.0.0.1", "--port", "-1", "--http_port", "-1", "--store_dir"]);
        command.arg(store.path()).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        for (role, password) in ROLES {
            command.env(format!("REDIAL_NATS_{}_PASSWORD", role.to_uppercase()), format!("\"{password}\""));
        }
        let mut child = command.spawn().unwrap();
        let (writer, log) = watch::channel(String::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                writer.send_modify(|log| *log = format!("{log}{line}\n"));
            }
        });
        let mut server = Self { address: String::new(), log, _child: child, _store: store };
        let started = server.wait_for("Server is ready", |log| log.contains("Server is ready")).await;
        let mut words =
            started.lines().filter_map(|line| line.split_once("client connections on ")).map(|(_, rest)| rest);
        server.address = words.next().expect("the server says where it listens").trim().into();
        server
    }

    /// Waits until the log matches, and returns all of it.
    async fn wait_for(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut log = self.log.clone();
        let found = timeout(Duration::from_secs(10), log.wait_for(|log| fits(log))).await;
        match found {
            Ok(Ok(log)) => log.clone(),
            _ => panic!("nats-server did not say {what:?} but\n{}", self.log.borrow().as_str()),
        }
    }

    /// Waits until the log has this refusal, and returns the log. `kind` is `Publish` or `Subscription`.
    pub(crate) async fn refusal(&self, kind: &str, role: &str, subject: &str) -> String {
        let what = format!("{kind} Violation of {role} on {subject}");
        // `User "worker"` in 2.9, `"REDIAL/user:worker"` in later versions.
        let parts = [format!("{kind} Violation"), format!("{role}\""), format!("Subject \"{subject}\"")];
        let says = |line: &str| parts.iter().all(|part| line.contains(part));
        self.wait_for(&what, |log| log.lines().any(says)).await
    }

    /// The number of refusals so far. `fence` was refused last, so the log has everything before it on its connection.
    pub(crate) async fn refusals_before(&self, role: &str, fence: &Queue) -> usize {
        let subject = format!("redial.fence.{role}");
        fence.publish(&subject, &()).await.unwrap();
        let log = self.refusal("Publish", role, &subject).await;
        log.lines().filter(|line| line.contains("Violation") && !line.contains("redial.fence.")).count()
    }

    /// A connection with the password and inbox of a role.
    pub(crate) async fn connect(&self, role: &str) -> Queue {
        let (_, password) = ROLES.into_iter().find(|(name, _)| *name == role).unwrap();
        self.connect_as(&format!("{role}:{}@", encoded(password)), &format!("_INBOX_{role}")).await.unwrap()
    }

    pub(crate) async fn connect_as(&self, login: &str, inbox: &str) -> Result<Queue, QueueError> {
        let config = QueueConfig {
            url: format!("nats://{login}{}", self.address),
            name: "permissions test".to_owned(),
            credentials: None,
            inbox_prefix: Some(inbox.to_owned()),
        };
        timeout(Duration::from_secs(10), Queue::connect(&config)).await.expect("an answer to the connection")
    }
}

fn encoded(password: &str) -> String {
    password.replace('#', "%23").replace('{', "%7B").replace('}', "%7D")
}

/// Found as everywhere: `REDIAL_NATS_SERVER`, the project's copy, PATH, Debian's path.
fn program() -> PathBuf {
    let named = std::env::var_os("REDIAL_NATS_SERVER").filter(|name| !name.is_empty()).map(PathBuf::from);
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(root.join(".redial/servers")).chain(std::env::split_paths(&path));
    let mut usual = folders.chain([PathBuf::from("/usr/sbin")]).map(|folder| folder.join("nats-server"));
    let found = named.or_else(|| usual.find(|file| file.is_file()));
    found.expect("nats-server: run ./dev test, install the package, or name it in REDIAL_NATS_SERVER")
}
