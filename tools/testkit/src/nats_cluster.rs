//! Several nats-servers that are one cluster.

use std::{fs, io::ErrorKind, path::PathBuf};

use redial_servers::{Member, Nats, NatsConfig, Server as _, any_free};
use uuid::Uuid;

/// The folder of the store in that of a server.
const STORE: &str = "jetstream";

/// Servers on 127.0.0.1 that are one cluster, each of which can be killed and started again at its address. Dropping this kills
/// them.
#[derive(Debug)]
pub struct NatsCluster {
    members: Vec<One>,
}

#[derive(Debug)]
struct One {
    name: String,
    config: NatsConfig,
    url: String,
    running: Option<Nats>,
}

impl NatsCluster {
    /// Starts so many servers on folders below `folder`, and waits until they have elected a leader.
    pub(crate) async fn start(folder: PathBuf, size: usize, accounts: Option<String>) -> Self {
        let password = Uuid::new_v4().simple().to_string();
        let ports: Vec<u16> = (0..size).map(|_| any_free().expect("no port is free")).collect();
        let configs = ports.iter().enumerate().map(|(n, port)| {
            let name = format!("n{}", n + 1);
            let member = Member { name: name.clone(), port: *port, routes: ports.clone(), password: password.clone() };
            let place = folder.join(&name);
            (name, NatsConfig { accounts: accounts.clone(), member: Some(member), ..NatsConfig::new(place) })
        });
        // All at once: none is ready alone.
        let starting: Vec<_> =
            configs.map(|(name, config)| (name, config.clone(), tokio::spawn(Nats::start(config)))).collect();
        let mut members = Vec::new();
        for (name, config, start) in starting {
            let nats = start.await.unwrap().unwrap_or_else(|error| panic!("{error}"));
            let config = NatsConfig { port: Some(nats.port()), ..config };
            members.push(One { name, config, url: nats.url(), running: Some(nats) });
        }
        Self { members }
    }

    /// Returns the URLs of all servers, with commas.
    pub fn url(&self) -> String {
        self.members.iter().map(|one| one.url.as_str()).collect::<Vec<_>>().join(",")
    }

    pub fn urls(&self) -> Vec<&str> {
        self.members.iter().map(|one| one.url.as_str()).collect()
    }

    /// Returns the index of the server of this name.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|one| one.name == name)
    }

    /// Returns the URL of a server that runs.
    pub fn running_url(&self) -> Option<&str> {
        self.members.iter().find(|one| one.running.is_some()).map(|one| one.url.as_str())
    }

    /// Returns the process id of a server; `None` if it is down.
    pub fn pid(&self, n: usize) -> Option<u32> {
        self.members.get(n)?.running.as_ref().map(Nats::pid)
    }

    /// Kills a server, as a crash does. Does nothing if it is down.
    pub async fn kill(&mut self, n: usize) {
        if let Some(nats) = self.members.get_mut(n).and_then(|one| one.running.take()) {
            nats.kill().await;
        }
    }

    /// Shuts a server down. Does nothing if it is down.
    pub async fn stop(&mut self, n: usize) {
        if let Some(nats) = self.members.get_mut(n).and_then(|one| one.running.take()) {
            nats.stop().await;
        }
    }

    /// Starts every server that is down, at its address.
    pub async fn start_again(&mut self) {
        let starting: Vec<_> = self
            .members
            .iter_mut()
            .filter(|one| one.running.is_none())
            .map(|one| {
                let start = tokio::spawn(Nats::start(one.config.clone()));
                (one, start)
            })
            .collect();
        for (one, start) in starting {
            one.running = Some(start.await.unwrap().unwrap_or_else(|error| panic!("{error}")));
        }
    }

    /// Removes the stores of all servers, which are down.
    pub fn wipe(&self) {
        for one in &self.members {
            match fs::remove_dir_all(one.config.folder.join(STORE)) {
                Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
                _ => {}
            }
        }
    }
}
