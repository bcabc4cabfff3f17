//! Containers of one Compose project, through the program `docker`: it knows where the engine is.

use std::{
    collections::BTreeSet,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;

use super::plan;

/// A container.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) id: String,
    /// Such as `redial-check_worker_2`.
    pub(super) name: String,
}

/// The engine that has the project.
pub(super) struct Docker {
    project: String,
}

impl Docker {
    pub(super) fn of_project(project: &str) -> Self {
        Self { project: project.to_owned() }
    }

    /// What `docker` prints; an error with what it says if it fails.
    pub(super) async fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("docker").args(args).stdin(Stdio::null()).kill_on_drop(true).output().await;
        let output = output.context("docker could not be started")?;
        let error = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "docker {}: {}", args.join(" "), error.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The containers of a service, also those that do not run, by name.
    pub(super) async fn containers(&self, service: &str) -> anyhow::Result<Vec<Container>> {
        self.list(&["--filter", &format!("label=com.docker.compose.service={service}")]).await
    }

    /// The containers of the project that match a filter.
    async fn list(&self, filter: &[&str]) -> anyhow::Result<Vec<Container>> {
        let project = format!("label=com.docker.compose.project={}", self.project);
        let args = ["ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.ID}}", "--filter", &project];
        let lines = self.run(&[&args, filter].concat()).await?;
        let pairs = lines.lines().filter_map(|line| line.split_once(' '));
        let mut found: Vec<Container> =
            pairs.map(|(name, id)| Container { id: id.to_owned(), name: name.to_owned() }).collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Everything that the engine says of a container.
    pub(super) async fn inspect(&self, container: &Container) -> anyhow::Result<Value> {
        let all: Value = serde_json::from_str(&self.run(&["inspect", &container.id]).await?)?;
        Ok(all[0].clone())
    }

    /// The full name of a network of the compose file.
    pub(super) fn network(&self, name: &str) -> String {
        format!("{}_{name}", self.project)
    }

    /// Containers that must run and do not, or that their health check finds wrong.
    pub(super) async fn unhealthy(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for service in plan::running() {
            let containers = self.containers(service).await?;
            if containers.is_empty() {
                found.push(format!("no container of {service}"));
            }
            for container in containers {
                let state = self.inspect(&container).await?["State"].clone();
                let (status, health) = (&state["Status"], &state["Health"]["Status"]);
                if status != "running" || health != "healthy" {
                    found.push(format!("{} is {status}, {health}", container.name));
                }
            }
        }
        Ok(found)
    }

    /// The same, once there are none or after this time: a health check takes its time after a start.
    pub(super) async fn unhealthy_after(&self, patience: Duration) -> anyhow::Result<Vec<String>> {
        let began = Instant::now();
        loop {
            let found = self.unhealthy().await?;
            if found.is_empty() || began.elapsed() > patience {
                return Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// The ids of the workers that a container has been.
    pub(super) async fn workers(&self, container: &Container) -> anyhow::Result<BTreeSet<String>> {
        let lines = self.log(container).await?;
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_start = |line: &Value| {
            let fields = &line["fields"];
            let started = fields["message"] == "Worker started" || line["message"] == "Worker started";
            started.then(|| fields["worker"].as_str().or(line["worker"].as_str()).map(str::to_owned)).flatten()
        };
        Ok(lines.filter_map(|line| of_start(&line)).collect())
    }

    /// Lines of logs that tell of a panic, of all containers of the project.
    pub(super) async fn panics(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for container in self.list(&[]).await? {
            let log = self.log(&container).await?;
            let lines = log.lines().filter(|line| line.contains("panicked"));
            found.extend(lines.map(|line| format!("{}: {line}", container.name)));
        }
        Ok(found)
    }

    /// Both output streams since the container was created.
    async fn log(&self, container: &Container) -> anyhow::Result<String> {
        let output = Command::new("docker").args(["logs", &container.id]).stdin(Stdio::null()).output().await?;
        let text = [output.stdout, output.stderr].concat();
        anyhow::ensure!(output.status.success(), "docker logs {}: {}", container.name, String::from_utf8_lossy(&text));
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
