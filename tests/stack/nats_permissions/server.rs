//! A real nats-server with `deploy/nats.conf` and users of an access file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use redial_access::{Access, server_configuration};
use redial_proto::subjects::{DISPATCHER_INBOX, GATEWAY_INBOX, user_inbox, worker_inbox};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

use super::client::Client;

/// Quoted for the server as `deploy/nats.conf` says: there 12e4 would be a number.
const PASSWORDS: [(&str, &str); 2] = [("TEST_DISPATCHER", "12e4"), ("TEST_PASSWORD", "0x1f#{} \"$\\")];

pub(crate) struct Server {
    address: String,
    log: watch::Receiver<String>,
    child: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts the server on a free port.
    pub(crate) async fn start(access: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_users(folder.path(), &users(access));
        let mut command = Command::new(program());
        command.arg("--config").arg(folder.path().join("nats.conf")).stdin(Stdio::null()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        for (variable, password) in PASSWORDS {
            command.env(variable, format!("\"{}\"", password.replace('\\', "\\\\").replace('"', "\\\"")));
        }
        fs::write(folder.path().join("nats.conf"), configuration(folder.path())).unwrap();
        let mut child = command.spawn().unwrap();
        let (writer, log) = watch::channel(String::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                writer.send_modify(|log| *log = format!("{log}{line}\n"));
            }
        });
        let mut server = Self { address: String::new(), log, child, folder };
        let started = server.wait_for("Server is ready", |log| log.contains("Server is ready")).await;
        let mut addresses =
            started.lines().filter_map(|line| line.split_once("client connections on ")).map(|(_, rest)| rest);
        server.address = addresses.next().expect("the server says where it listens").trim().into();
        server
    }

    /// Gives the server other users, as an operator does: a new file and SIGHUP.
    pub(crate) async fn reload(&self, access: &str) {
        let reloads = |log: &str| log.matches("Reloaded server configuration").count();
        let before = reloads(&self.log.borrow());
        write_users(self.folder.path(), &users(access));
        let process = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(process, Signal::HUP).unwrap();
        self.wait_for("Reloaded server configuration", |log| reloads(log) > before).await;
    }

    /// Waits until the log matches, and returns all of it.
    async fn wait_for(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut log = self.log.clone();
        let found = timeout(Duration::from_secs(20), log.wait_for(|log| fits(log))).await;
        match found {
            Ok(Ok(log)) => log.clone(),
            _ => panic!("nats-server did not say {what:?} but\n{}", self.log.borrow().as_str()),
        }
    }

    /// A user's password and inbox.
    pub(crate) fn credentials(user: &str) -> (&'static str, String) {
        match user.split_once('.') {
            None if user == "gateway" => (PASSWORDS[1].1, GATEWAY_INBOX.to_owned()),
            None => (PASSWORDS[0].1, DISPATCHER_INBOX.to_owned()),
            Some(("worker", name)) => (PASSWORDS[1].1, worker_inbox(&name.parse().unwrap())),
            Some((tenant, user)) => (PASSWORDS[1].1, user_inbox(&tenant.parse().unwrap(), &user.parse().unwrap())),
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A connection of a user with its inbox.
    pub(crate) async fn connect(&self, user: &str) -> Client {
        let (password, inbox) = Self::credentials(user);
        self.login(&json!({"user": user, "pass": password}), &inbox).await.unwrap()
    }

    /// A connection with any login.
    pub(crate) async fn login(&self, login: &Value, inbox: &str) -> Result<Client, String> {
        Client::connect(&self.address, login, inbox).await
    }
}

/// `deploy/nats.conf` on a free port and with a folder of its own.
fn configuration(folder: &Path) -> String {
    let text = include_str!("../../../deploy/nats.conf");
    let changes = [
        ("0.0.0.0:4222", "127.0.0.1:-1".to_owned()),
        ("127.0.0.1:8222", "127.0.0.1:-1".to_owned()),
        ("/data", folder.join("data").display().to_string()),
    ];
    changes.into_iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, &new)
    })
}

/// The users of an access file.
fn users(access: &str) -> String {
    let access = Access::read("access.toml", access).unwrap_or_else(|wrong| panic!("{}", wrong.join("\n")));
    server_configuration(&access, "access.toml")
}

fn write_users(folder: &Path, text: &str) {
    fs::write(folder.join("users.conf"), text).unwrap();
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
