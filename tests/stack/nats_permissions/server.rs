//! A real nats-server with `deploy/nats.conf` and users of an access file.

use std::{fs, path::Path};

use redial_access::{Access, server_configuration};
use redial_proto::subjects::{DISPATCHER_INBOX, GATEWAY_INBOX, user_inbox, worker_inbox};
use redial_queue::QueueConfig;
use redial_test_stack::{Process, RawNats, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Quoted for the server as `deploy/nats.conf` says: there 12e4 would be a number.
const PASSWORDS: [(&str, &str); 2] = [("TEST_DISPATCHER", "12e4"), ("TEST_PASSWORD", "0x1f#{} \"$\\")];

pub(crate) struct Server {
    address: String,
    process: Process,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts the server on a free port with the users of an access file.
    pub(crate) async fn start(access: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_users(folder.path(), access);
        fs::write(folder.path().join("nats.conf"), configuration(folder.path())).unwrap();
        let process = Process::start(redial_servers::nats_server().unwrap(), |command| {
            command.arg("--config").arg(folder.path().join("nats.conf"));
            for (variable, password) in PASSWORDS {
                command.env(variable, format!("\"{}\"", password.replace('\\', "\\\\").replace('"', "\\\"")));
            }
        });
        let line = process.line("client connections on ").await;
        process.line("Server is ready").await;
        let address = line.split_once("client connections on ").unwrap().1.trim().to_owned();
        Self { address, process, folder }
    }

    /// Gives the server other users, as an operator does: a new file and SIGHUP.
    pub(crate) async fn reload(&self, access: &str) {
        let reloads = || self.process.output().matches("Reloaded server configuration").count();
        let before = reloads();
        write_users(self.folder.path(), access);
        let process = Pid::from_raw(self.process.pid().try_into().unwrap()).unwrap();
        kill_process(process, Signal::HUP).unwrap();
        until("the server has reloaded", async || (reloads() > before).then_some(())).await;
    }

    /// A user's password and inbox.
    fn credentials(user: &str) -> (&'static str, String) {
        match user.split_once('.') {
            None if user == "gateway" => (PASSWORDS[1].1, GATEWAY_INBOX.to_owned()),
            None => (PASSWORDS[0].1, DISPATCHER_INBOX.to_owned()),
            Some(("worker", name)) => (PASSWORDS[1].1, worker_inbox(&name.parse().unwrap())),
            Some((tenant, user)) => (PASSWORDS[1].1, user_inbox(&tenant.parse().unwrap(), &user.parse().unwrap())),
        }
    }

    /// The settings of a user's correct client.
    pub(crate) fn config(&self, user: &str) -> QueueConfig {
        let (password, inbox) = Self::credentials(user);
        let mut url = String::from("nats://");
        for part in [user, ":", password] {
            let encode = |c: char| {
                if c.is_ascii_alphanumeric() || ".:".contains(c) { c.to_string() } else { format!("%{:02X}", c as u32) }
            };
            url.extend(part.chars().map(encode));
        }
        let mut config = QueueConfig {
            url: format!("{url}@{}", self.address),
            name: user.to_owned(),
            inbox_prefix: Some(inbox),
            ..QueueConfig::default()
        };
        if let Some((tenant, user)) = user.split_once('.').filter(|(tenant, _)| *tenant != "worker") {
            (config.tenant, config.user) = (tenant.parse().unwrap(), user.parse().unwrap());
        }
        config
    }

    /// A connection of a user with its inbox.
    pub(crate) async fn connect(&self, user: &str) -> RawNats {
        self.try_connect(user).await.unwrap()
    }

    /// The same; the error is what the server says.
    pub(crate) async fn try_connect(&self, user: &str) -> Result<RawNats, String> {
        let (password, inbox) = Self::credentials(user);
        self.login(&json!({"user": user, "pass": password, "no_responders": true}), &inbox).await
    }

    /// A connection with any login.
    pub(crate) async fn login(&self, login: &Value, inbox: &str) -> Result<RawNats, String> {
        RawNats::login(&self.address, login, inbox).await
    }
}

fn write_users(folder: &Path, access: &str) {
    let access = Access::read("access.toml", access).unwrap_or_else(|wrong| panic!("{}", wrong.join("\n")));
    fs::write(folder.join("users.conf"), server_configuration(&access, "access.toml")).unwrap();
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
