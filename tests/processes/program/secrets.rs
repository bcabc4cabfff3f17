//! What a command tool can find out about the worker that started it, and what of that reaches the record.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use redial_test_stack::{Process, Stack};
use serde_json::{Value, json};
use uuid::Uuid;

use super::redial;

const REDIAL: &str = env!("CARGO_BIN_EXE_redial");
/// A user that exists nowhere else.
const STRANGER: u32 = 54_321;

/// Looks for the words of the file `words` wherever a process shows its environment and command line, and opens what belongs to
/// the worker. Prints only counts and names, because words would be removed.
const SPY: &str = r#"
found=$(cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/task/*/environ 2>/dev/null | tr '\0' '\n' | grep -acF -f words)
own=$(cat /proc/self/environ | tr '\0' '\n' | grep -c ^REDIAL_CALL=)
opened=
for file in environ mem maps auxv pagemap syscall; do
    (exec 3< /proc/$PPID/$file) 2>/dev/null && [ "$(head -c 1 /proc/$PPID/$file 2>/dev/null | wc -c)" = 1 ] && opened="$opened $file"
done
for folder in fd cwd root map_files; do
    ls /proc/$PPID/$folder/ > /dev/null 2>&1 && opened="$opened $folder"
done
(exec 3< /proc/$PPID/mem) 2>/dev/null && opened="$opened memory"
files=$(ls -l /proc/self/fd/ | grep -c /inherited)
worker=$(tr '\0' ' ' < /proc/$PPID/cmdline)
printf '{"found": %s, "own": %s, "opened": "%s", "files": %s, "worker": "%s", "user": %s}' "$found" "$own" "$opened" "$files" "$worker" "$(id -u)"
"#;

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Secrets of a worker that nothing else on this machine has.
struct Canaries {
    tool: String,
    model: String,
    inherited: String,
    nats: String,
}

impl Canaries {
    fn of(nats_url: &str) -> Self {
        let unique = |kind: &str| format!("{kind}+/&<>'\"={}~", Uuid::new_v4().simple());
        let login = nats_url.split_once("://").unwrap().1.rsplit_once('@').unwrap().0;
        Self {
            tool: unique("tool"),
            model: unique("model"),
            inherited: unique("inherited"),
            nats: login.split_once(':').unwrap().1.to_owned(),
        }
    }

    fn all(&self) -> [&str; 4] {
        [&self.tool, &self.model, &self.inherited, &self.nats]
    }
}

/// A worker that is a real process, with its files in a folder that every user may use.
struct Spied {
    stack: Stack,
    folder: tempfile::TempDir,
    canaries: Canaries,
}

impl Spied {
    async fn start(tools: &[(&str, &str)]) -> Self {
        let stack = Stack::start().await;
        let canaries = Canaries::of(stack.servers.nats_url());
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let mut manifest =
            "[[tool]]\nname = \"other\"\n[tool.command]\nargv = [\"true\"]\ninherit = [\"SIGNING_KEY\"]\n\
                            env = { TOKEN = \"{{secret.OTHER_TOKEN}}\" }\n"
                .to_owned();
        for (name, script) in tools {
            write(&format!("{name}.sh"), script);
            manifest += &format!(
                "[[tool]]\nname = \"{name}\"\nretry = {{ max_attempts = 1 }}\n[tool.command]\n\
                 argv = [\"sh\", \"{name}.sh\"]\nstderr_to_model = true\n"
            );
        }
        write("tools.toml", &manifest);
        write("words", &canaries.all().join("\n"));
        let model = "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nkey_env = \"MODEL_KEY\"\n";
        write("models.toml", model);
        Self { stack, folder, canaries }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the worker, as another user if one is given.
    async fn worker(&self, user: Option<u32>, more: &[&str]) -> Process {
        // The folder of the build may be closed to other users.
        let program: PathBuf = if user.is_some() { self.path().join("redial") } else { REDIAL.into() };
        if user.is_some() {
            fs::copy(REDIAL, &program).unwrap();
        }
        let set_up = |command: &mut std::process::Command| {
            if let Some(user) = user {
                let user = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()];
                command.args(user).arg("--").arg(&program);
            }
            command.arg("worker").args(more).current_dir(self.path());
            command.env("REDIAL_NATS_URL", self.stack.servers.nats_url());
            let Canaries { tool, model, inherited, .. } = &self.canaries;
            command.envs([("OTHER_TOKEN", tool), ("MODEL_KEY", model), ("SIGNING_KEY", inherited)]);
        };
        // As a shell or a supervisor may leave it open.
        fs::write(self.path().join("inherited"), "").unwrap();
        let open = fs::File::open(self.path().join("inherited")).unwrap();
        rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
        let started = if user.is_some() { Path::new("/usr/bin/setpriv") } else { program.as_path() };
        let worker = Process::start(started, set_up);
        worker.line("Worker started").await;
        worker
    }

    /// Everything that is on record about calls, as one text.
    async fn record(&self) -> String {
        let mut record = String::new();
        for table in ["calls", "attempts", "call_history", "attempt_history", "tools", "workers", "dead_letters"] {
            record +=
                &self.stack.values::<String>(&format!("SELECT row_to_json(t)::text FROM {table} t")).await.join("\n");
        }
        record
    }

    async fn finish(self, worker: Process) {
        worker.terminate();
        assert!(worker.ended().await.success(), "{}", worker.output());
        self.stack.finish().await;
    }
}

async fn spies_find_nothing(user: Option<u32>, more: &[&str]) -> Value {
    let spied = Spied::start(&[("spy", SPY)]).await;
    let worker = spied.worker(user, more).await;
    let call = spied.stack.call("spy", json!({})).await;
    let seen: Value = serde_json::from_str(&spied.stack.output(call).await).unwrap();
    assert_eq!((&seen["found"], &seen["own"], &seen["opened"]), (&json!(0), &json!(1), &json!("")), "{seen}");
    assert_eq!(seen["files"], 0, "open files of the worker: {seen}");
    assert!(seen["worker"].as_str().unwrap().contains("worker"), "it looked at the worker: {seen}");
    spied.finish(worker).await;
    seen
}

#[tokio::test]
async fn a_program_finds_no_secret_of_its_worker() {
    let user = is_root().then_some(STRANGER);
    let seen = spies_find_nothing(user, &[]).await;
    assert_eq!(seen["user"], user.unwrap_or_else(|| rustix::process::geteuid().as_raw()));
    // As another user.
    if is_root() {
        let seen = spies_find_nothing(None, &["--command-user", &STRANGER.to_string()]).await;
        assert_eq!(seen["user"], STRANGER);
    }
}

/// The kernel shows a command line to everybody.
#[tokio::test]
async fn a_password_on_the_command_line_is_warned_of() {
    let stack = Stack::start().await;
    let worker = Process::start(REDIAL, |command| {
        command.args(["worker", "--nats-url", stack.servers.nats_url()]);
    });
    let line = worker.line("Every process of this machine can read the password on the command line").await;
    assert!(line.contains("REDIAL_NATS_URL"), "{line}");
    worker.line("Worker started").await;
    worker.terminate();
    assert!(worker.ended().await.success(), "{}", worker.output());
    stack.finish().await;
}

#[tokio::test]
async fn root_without_another_user_refuses_command_tools() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tools.toml"), "[[tool]]\nname = \"a\"\n[tool.command]\nargv = [\"true\"]\n").unwrap();
    let worker = ["worker", "--nats-url", "nats://127.0.0.1:1"];
    let run = redial(folder.path(), &[], &worker).await;
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
    insta::assert_snapshot!(run.err);
    for user in ["nobdy", "4294967295"] {
        let run = redial(folder.path(), &[("REDIAL_COMMAND_USER", user)], &worker).await;
        assert!(run.code == 2 && run.err.contains("(environment variable REDIAL_COMMAND_USER)"), "{}", run.err);
    }
    // Everything on one machine works for root as well, and says as whom.
    let run = redial(folder.path(), &[], &["dev", "--check"]).await;
    let told = "redial dev runs as root, so command tools run as user nobody; --command-user sets another\n";
    assert_eq!((run.code, run.err.as_str()), (0, told));
    let run = redial(folder.path(), &[], &["dev", "--check", "--command-user", "root"]).await;
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

/// Forms in which programs and services return a text; the units of the redaction show the others.
fn encoded(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    vec![secret.to_owned(), STANDARD.encode(secret), json[1..json.len() - 1].to_owned()]
}

#[tokio::test]
async fn secrets_of_the_worker_in_any_form_reach_no_record_and_no_log() {
    let scripts = [
        ("prints", "cat leaks"),
        ("complains", "cat leaks >&2; exit 1"),
        ("fails", "cat leaks; exit 1"),
        ("explains", "cat error.json; exit 1"),
        ("floods", "cat leaks; head -c 600000 /dev/zero | tr '\\0' x"),
        ("answers", "cat answer.json"),
    ];
    let spied = Spied::start(&scripts).await;
    let leaks: Vec<String> = spied.canaries.all().into_iter().flat_map(encoded).collect();
    let write = |name: &str, text: &str| fs::write(spied.path().join(name), text).unwrap();
    // As many that the record of a failure can have only a part of them, which begins and ends anywhere.
    write("leaks", &leaks.iter().flat_map(|leak| ["<", leak, ">\n"]).collect::<String>());
    let detail = json!({"path": "/a", "rule": "r", "sent": leaks, "allowed": leaks[1], "hint": leaks.join(" ")});
    let error = json!({"error": {"class": "business_rule", "message": leaks.join(", "), "details": [detail]}});
    write("error.json", &error.to_string());
    let keys: serde_json::Map<String, Value> = leaks.iter().map(|leak| (leak.clone(), json!([leak, 1]))).collect();
    write("answer.json", &json!(keys).to_string());
    let user = if is_root() { vec!["--command-user", "nobody"] } else { Vec::new() };
    let worker = spied.worker(None, &[&user[..], &["--log", "trace"]].concat()).await;
    let mut shown = String::new();
    for (tool, _) in scripts {
        let call = spied.stack.call(tool, json!({})).await;
        let view = spied.stack.ended(call).await;
        shown += &serde_json::to_string(&view).unwrap();
    }
    let record = spied.record().await;
    assert!(record.matches("[secret]").count() > leaks.len(), "{record}");
    let places = [("the record", &record), ("answers", &shown), ("the log", &worker.output())];
    for (place, text) in places {
        for leak in &leaks {
            assert!(!text.contains(leak), "{place}: {leak}");
        }
        for canary in spied.canaries.all() {
            // No part either: an encoding of 16 characters has 8 bytes at least.
            for form in encoded(canary) {
                let parts = (0..form.len() - 16).map(|at| &form[at..at + 16]);
                let part = parts.into_iter().find(|part| text.contains(part));
                assert_eq!(part, None, "a part of {form} in {place}");
            }
        }
    }
    spied.finish(worker).await;
}
