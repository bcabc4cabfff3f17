//! A running `redial dev` with scripted tools, and commands against it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use redial_proto::CallView;
use redial_test_stack::{Process, ScriptedHttp};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::assert_in_order;

const REDIAL: &str = env!("CARGO_BIN_EXE_redial");

pub(crate) struct Fixture {
    pub(crate) http: ScriptedHttp,
    pub(crate) nats_url: String,
    pub(crate) database_url: String,
    pub(crate) dev: Process,
    folder: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// The command ended with this code, printed nothing, and said these parts in any order.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in {self:?}");
        }
    }
}

impl Fixture {
    /// Starts it with a tool for each path: `POST /<tool>` with the arguments as the body.
    pub(crate) async fn start(tools: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // If the test runs as root, Postgres runs as another user, who needs access.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let http = ScriptedHttp::start().await;
        let manifest = folder.path().join("tools.toml");
        let entries = tools.iter().map(|(name, effect)| entry(name, effect, &http.url(&format!("/{name}"))));
        fs::write(&manifest, entries.collect::<String>()).unwrap();
        let dev = Process::start(Path::new(REDIAL), |command| {
            command
                .args(["dev", "--json", "--log", "info", "--log-format", "json", "--worker-name", "host", "--folder"])
                .arg(folder.path().join("dev"));
            command.arg("--tools").arg(&manifest);
        });
        let ready: Value = serde_json::from_str(&dev.line("\"ready_ms\"").await).unwrap();
        // Its worker has registered its tools.
        dev.line(r#""fields":{"message":"Worker started","worker":"host-"#).await;
        let url = |name: &str| ready[name].as_str().unwrap().to_owned();
        Self { http, nats_url: url("nats_url"), database_url: url("database_url"), dev, folder }
    }

    /// A command that knows the servers.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(REDIAL);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).kill_on_drop(true);
        command.env("REDIAL_NATS_URL", &self.nats_url).env("REDIAL_DATABASE_URL", &self.database_url);
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Done {
        ended(self.command(arguments)).await
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) async fn out(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments).await;
        assert_eq!(done.code, 0, "redial {arguments:?}: {done:?}");
        done.out
    }

    /// Runs a command that must succeed and print these parts in this order.
    pub(crate) async fn shows(&self, arguments: &[&str], parts: &[&str]) {
        assert_in_order(&self.out(arguments).await, parts);
    }

    /// The same with `--json`, as its lines.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let out = self.out(&[arguments, &["--json"]].concat()).await;
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The ids of the calls that `redial history --json` lists. Its lines may hold JSON that libraries refuse.
    pub(crate) async fn calls(&self, question: &[&str]) -> Vec<String> {
        let out = self.out(&[&["history", "--json"], question].concat()).await;
        out.lines().map(|line| line[r#"{"call":""#.len()..][..36].to_owned()).collect()
    }

    /// Writes a file; its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Submits a call and waits for its end; its id.
    pub(crate) async fn ended(&self, tool: &str, more: &[&str]) -> String {
        let done = self.run(&[&["call", tool, "--wait", "--json"], more].concat()).await;
        let view: CallView = serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"));
        view.call.to_string()
    }
}

/// Runs a command to its end. Output that goes elsewhere is not read.
pub(crate) async fn ended(mut command: Command) -> Done {
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn entry(name: &str, effect: &str, url: &str) -> String {
    format!(
        "[[tool]]\nname = \"{name}\"\neffect = \"{effect}\"\ndescription = \"The tool {name}.\"\ntimeout = \"1h\"\n\
         retry = {{ initial = \"10ms\" }}\n[tool.http]\nmethod = \"POST\"\nurl = \"{url}\"\n\n"
    )
}
