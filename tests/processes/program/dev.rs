//! `redial dev`: it checks files first, is quiet, and says who else runs in its folder.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use redial_test_stack::{Process, until};
use tempfile::TempDir;

use super::{folder, redial};

const REDIAL: &str = env!("CARGO_BIN_EXE_redial");

#[tokio::test]
async fn all_mistakes_of_all_files_are_told_before_a_server_starts() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("redial.toml", "leese = \"5s\"\nslots = 0\n");
    write(
        "tools.toml",
        "[[tool]]\nname = \"a\"\ntimeout = \"soon\"\n[tool.command]\nargv = []\n\n[[tool]]\nefect = \"read\"\n",
    );
    write("models.toml", "[models.small]\nprovider = \"opnai\"\n");
    write("agents.toml", "[agents.helper]\nmodel = \"small\"\npolcy = \"x\"\nbudgets.turns = 0\n");
    let run = redial(folder.path(), &[], &["dev"]).await;
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    insta::assert_snapshot!(run.err);
    assert!(!folder.path().join(".redial").exists(), "something was started");
    // Mistakes of several kinds have the code of none of them.
    fs::remove_file(folder.path().join("redial.toml")).unwrap();
    let json = redial(folder.path(), &[], &["dev", "--check", "--json"]).await;
    let error: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, error["error"]["code"].as_str()), (2, Some("invalid_configuration")));
}

#[tokio::test]
async fn unknown_models_and_tools_of_agents_are_named_at_the_start() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("rules.toml", "[[rule]]\ntext = \"hello\"\n");
    write("models.toml", "[models.small]\nprovider = \"script\"\nscript = \"rules.toml\"\n");
    write("agents.toml", "[agents.helper]\nmodel = \"smal\"\ntools = [\"ecko\", \"get_*\"]\n");
    let run = redial(folder.path(), &[], &["dev", "--check"]).await;
    assert_eq!((run.code, run.out.as_str()), (0, "settings and files are right: 1 model, 1 agent\n"));
    insta::assert_snapshot!(run.err);
    write("agents.toml", "[agents.helper]\nmodel = \"small\"\ntools = [\"echo\", \"get_*\"]\n");
    let run = redial(folder.path(), &[], &["dev", "--check"]).await;
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let model = "[models.small]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"NO_KEY\"\n";
    write("models.toml", model);
    let run = redial(folder.path(), &[], &["dev", "--check"]).await;
    let warning = "warning: model \"small\": environment variable NO_KEY is not set; it fails until its worker is started with it\n";
    assert_eq!((run.code, run.err.as_str()), (0, warning));
}

fn start(folder: &Path) -> Process {
    Process::start(Path::new(REDIAL), |command| {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("REDIAL_LOG")) {
            command.env_remove(name);
        }
        command.args(["dev", "--folder"]).arg(folder);
    })
}

#[tokio::test]
async fn a_start_is_quiet_a_second_one_is_told_who_runs_and_one_after_a_kill_recovers() {
    let folder = folder();
    let dev = start(folder.path());
    dev.line("Ctrl-C stops everything").await;
    let lines = dev.output().lines().count();
    assert!(lines <= 11, "{}", dev.output());
    let log = || fs::read_to_string(folder.path().join("redial.log")).unwrap();
    until("the log has what the terminal has not", async || log().contains("Worker started").then_some(())).await;
    assert!(!dev.output().contains("INFO"), "{}", dev.output());

    let arguments = ["dev", "--folder", folder.path().to_str().unwrap()];
    let second = redial(folder.path(), &[], &arguments).await;
    let kill = format!("kill {}", dev.pid());
    second.failed(1, &["already runs", "started 20", "NATS nats://127.0.0.1:", "--folder", "[wrong_state]", &kill]);
    assert!(!second.err.contains("redial:"), "no password: {}", second.err);

    dev.kill().await;
    let next = start(folder.path());
    next.line("Ctrl-C stops everything").await;
    assert!(next.output().contains("ended without cleaning up"), "{}", next.output());
    next.interrupt();
    assert!(next.ended().await.success(), "{}", next.output());
    assert!(!folder.path().join("dev.json").exists());
}

#[tokio::test]
async fn a_second_ctrl_c_ends_it_at_once() {
    let (dev, _folder) = with_a_running_call().await;
    dev.interrupt();
    dev.line("Ctrl-C again ends at once").await;
    dev.interrupt();
    assert_eq!(dev.ended().await.code(), Some(130), "{}", dev.output());
}

/// Whoever supervises it sends no Ctrl-C.
#[tokio::test]
async fn a_second_sigterm_ends_it_at_once() {
    let (dev, _folder) = with_a_running_call().await;
    // Two that come at the same moment are one.
    until("it ends in its grace", async || {
        dev.terminate();
        (!dev.runs()).then_some(())
    })
    .await;
    assert_eq!(dev.ended().await.code(), Some(143), "{}", dev.output());
}

/// A call runs that ends later than any test. Its folder is removed with the second.
async fn with_a_running_call() -> (Process, TempDir) {
    let folder = folder();
    // As root, programs run as another user.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let manifest = folder.path().join("tools.toml");
    let marker = folder.path().join("runs");
    let tool = format!(
        "[[tool]]\nname = \"slow\"\neffect = \"read\"\ntimeout = \"10m\"\n[tool.command]\nargv = [\"sh\", \"-c\", \
         \"touch {}; sleep 600\"]\n",
        marker.display()
    );
    fs::write(&manifest, tool).unwrap();
    let dev = Process::start(Path::new(REDIAL), |command| {
        command.args(["dev", "--json", "--drain-grace", "10m", "--folder"]).arg(folder.path());
        command.arg("--tools").arg(&manifest);
    });
    let ready: serde_json::Value = serde_json::from_str(&dev.line("\"ready_ms\"").await).unwrap();
    let call = redial(folder.path(), &[], &["call", "slow", "--nats-url", ready["nats_url"].as_str().unwrap()]).await;
    assert_eq!(call.code, 0, "{}", call.err);
    until("the tool runs", async || marker.exists().then_some(())).await;
    (dev, folder)
}

#[tokio::test]
async fn programs_that_are_missing_are_named_together() {
    let folder = folder();
    let nowhere = [("REDIAL_NATS_SERVER", "/nowhere/nats"), ("REDIAL_POSTGRES_BIN", "/nowhere/postgres")];
    let run = redial(folder.path(), &nowhere, &["dev"]).await;
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.err);
}
