//! Command tools that run real programs.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Stdio,
    time::Duration,
};

use redial_proto::{ErrorClass, Failure, TaskId};
use redial_tools::{CommandUser, Context, Tool, ToolResult, load_with, wait_for_kills};
use serde_json::{Value, json, value::RawValue};
use tokio::{sync::oneshot, time::timeout};

const SECRET: &str = "canary-5f1c";

/// Makes a folder in which programs may write, also as another user: as root, this runs them as one.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Makes a tool that runs a shell script, with `city` as its first argument.
fn script(folder: &Path, script: &str) -> Tool {
    fs::write(folder.join("script.sh"), script).unwrap();
    manifest(folder, r#"argv = ["sh", "script.sh", "--", "{{arguments.city}}"]"#)
}

fn manifest(folder: &Path, command: &str) -> Tool {
    let text = format!(
        "[[tool]]\nname = \"t\"\nparameters = {{ properties = {{ city = {{ default = \"-x\" }} }} }}\n\
         [tool.command]\n{command}\nenv = {{ TOKEN = \"{{{{secret.TOKEN}}}}\" }}\n"
    );
    let path = folder.join("tools.toml");
    fs::write(&path, text).unwrap();
    let variable = |name: &str| if name == "TOKEN" { Some(SECRET.to_owned()) } else { std::env::var(name).ok() };
    load_with(&path, &CommandUser::own_or_unprivileged().unwrap(), &variable).unwrap().remove(0)
}

fn context() -> Context {
    Context {
        idempotency_key: "key-7".to_owned(),
        tenant: "acme".to_owned(),
        conversation: Some("c1".to_owned()),
        task: Some(TaskId::generate()),
        ..Context::new("t")
    }
}

async fn run(tool: &Tool, arguments: &Value) -> ToolResult {
    tool.run(context(), RawValue::from_string(arguments.to_string()).unwrap()).await
}

async fn shell(text: &str) -> ToolResult {
    let folder = folder();
    run(&script(folder.path(), text), &json!({})).await
}

async fn failure(text: &str) -> Failure {
    shell(text).await.unwrap_err()
}

#[tokio::test]
async fn arguments_go_in_and_the_result_comes_out() {
    assert_eq!(shell("echo plain text").await.unwrap().get(), "\"plain text\\n\"");
    let folder = folder();
    let arguments = json!({"city": "a", "data": "x".repeat(250_000)});
    assert_eq!(run(&script(folder.path(), "cat"), &arguments).await.unwrap().get(), arguments.to_string());
    assert_eq!(
        run(&script(folder.path(), "echo 1"), &arguments).await.unwrap().get(),
        "1",
        "input that the program does not read"
    );
}

#[tokio::test]
async fn one_template_is_one_argument() {
    let folder = folder();
    let tool = script(folder.path(), r#"shift; printf '[%s][%s]' "$#" "$1""#);
    for city in ["", "a b", "$(id) `id` ; | & > x", "--help", "北京\n\"'"] {
        let answer = run(&tool, &json!({"city": city})).await.unwrap();
        assert_eq!(serde_json::from_str::<String>(answer.get()).unwrap(), format!("[1][{city}]"));
    }
    assert_eq!(run(&tool, &json!({})).await.unwrap().get(), "\"[1][-x]\"", "the schema's default");
    assert_eq!(run(&tool, &json!({"city": "a\0b"})).await.unwrap_err().class, ErrorClass::InvalidArguments);
    let huge = json!({"city": "x".repeat(200_000)});
    assert_eq!(run(&tool, &huge).await.unwrap_err().class, ErrorClass::InvalidArguments, "the kernel takes 128 KiB");
}

#[tokio::test]
async fn a_value_never_becomes_an_option() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script.sh"), r#"printf '[%s]' "$@""#).unwrap();
    let tool = |more: &str| manifest(folder.path(), &format!("argv = [\"sh\", \"script.sh\", {more}"));
    let sent = async |tool: &Tool, city: &str| run(tool, &json!({"city": city})).await;
    for argument in [r#""{{arguments.city}}"]"#, r#""{{arguments.city}}.png"]"#, r#""-v", "{{arguments.city}}", "--"]"#]
    {
        let tool = tool(argument);
        for city in ["-rf", "--output=/etc/passwd", "-", "-5"] {
            let failure = sent(&tool, city).await.unwrap_err();
            assert_eq!((failure.class, failure.effect_possible), (ErrorClass::InvalidArguments, false));
            let detail = &failure.details[0];
            assert_eq!((detail.path.as_str(), detail.rule.as_str()), ("/city", "option"), "{argument}");
            assert!(detail.hint.as_deref().unwrap().contains("./"), "{detail}");
        }
        assert!(sent(&tool, "./-rf").await.is_ok(), "{argument}");
    }
    for argument in [
        r#""--", "{{arguments.city}}"]"#,
        r#""--city={{arguments.city}}"]"#,
        r#""{{arguments.city}}"]
allow_leading_dash = ["city"]"#,
    ] {
        assert!(sent(&tool(argument), "-rf").await.is_ok(), "{argument}");
    }
    let empty = sent(&tool(r#""{{arguments.city}}-all"]"#), "").await.unwrap_err();
    assert_eq!(empty.class, ErrorClass::InvalidArguments, "nothing before a literal dash");
}

#[tokio::test]
async fn the_environment_is_clean() {
    let answer = shell("env | cut -d= -f1 | sort | grep -vE '^(PWD|OLDPWD|SHLVL|_|HOME|LANG|TZ)$'").await.unwrap();
    let names: String = serde_json::from_str(answer.get()).unwrap();
    let ours =
        "ATTEMPT CALL CONVERSATION IDEMPOTENCY_KEY TASK TENANT".split(' ').map(|name| format!("REDIAL_{name}\n"));
    assert_eq!(names, format!("PATH\n{}TOKEN\n", ours.collect::<Vec<_>>().concat()));
    assert_eq!(shell("printf %s \"$REDIAL_TENANT\"").await.unwrap().get(), "\"acme\"");
}

#[tokio::test]
async fn a_program_finds_what_is_installed_and_cannot_reach_into_processes_or_the_kernel() {
    let path = shell("printf %s \"$PATH\"").await.unwrap();
    assert_eq!(path.get(), "\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"");
    let bits =
        shell("awk '/^(CapBnd|NoNewPrivs|Seccomp):/ {printf \"%s %s;\", $1, $2}' /proc/self/status").await.unwrap();
    let [bounds, rest] = ["CapBnd: 0000000000000000;", "NoNewPrivs: 1;Seccomp: 2;"];
    // Only root can empty the set; for others it changes nothing.
    let bounds = if rustix::process::geteuid().is_root() { bounds } else { "" };
    assert!(bits.get().contains(&format!("{bounds}{rest}")), "{bits}");
    // PTRACE_TRACEME, which every process may ask for otherwise.
    let ptrace = format!("perl -e 'print syscall({}, 0, 0, 0, 0), \" \", 0 + $!'", libc::SYS_ptrace);
    assert_eq!(shell(&ptrace).await.unwrap().get(), format!("\"-1 {}\"", libc::EPERM));
}

/// Returns how a script fails whose manifest has these lines as well.
async fn failure_with(lines: &str, text: &str) -> Failure {
    let folder = folder();
    fs::write(folder.path().join("script.sh"), text).unwrap();
    let tool = manifest(folder.path(), &format!("argv = [\"sh\", \"script.sh\"]\n{lines}"));
    run(&tool, &json!({})).await.unwrap_err()
}

#[tokio::test]
async fn the_manifest_says_what_an_exit_code_means_and_what_a_model_may_read() {
    let codes = "exit_codes = { 75 = { class = \"unavailable\", effect_possible = false } }";
    let failed = failure_with(codes, "exit 75").await;
    assert_eq!((failed.class, failed.effect_possible), (ErrorClass::Unavailable, false));
    let shown = failure_with("stderr_to_model = true", "echo no city $TOKEN at db-7.internal >&2; exit 1").await;
    assert_eq!(shown.message, "the program ended with exit code 1: no city *********** at [host]");
    assert_eq!((shown.class, shown.diagnostics), (ErrorClass::ToolFailed, None));
}

#[tokio::test]
async fn secrets_and_hosts_are_kept_out() {
    let failed = failure("echo \"login $TOKEN at db-7.internal failed\" >&2; exit 69").await;
    let written = "login [secret] at [host] failed".replace("[secret]", "***********");
    assert_eq!((failed.message.as_str(), failed.diagnostics), ("the program ended with exit code 69", Some(written)));
    let stdout = failure("echo \"login $TOKEN at db-7.internal failed\"; exit 1").await;
    assert_eq!(stdout.diagnostics.as_deref(), Some("login [secret] at [host] failed"));
    assert_eq!(shell("echo \"\\\"$TOKEN\\\"\"").await.unwrap().get(), "\"[secret]\"");
}

#[tokio::test]
async fn programs_of_root_run_as_another_user_without_rights() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("tools.toml"), "[[tool]]\nname = \"t\"\n[tool.command]\nargv = [\"true\"]\n").unwrap();
    let refused = load_with(&folder.path().join("tools.toml"), &CommandUser::Own, &|_| None).unwrap_err().to_string();
    assert!(refused.contains("the worker runs as root") && refused.contains("--command-user"), "{refused}");
    let nobody = CommandUser::parse("nobody").unwrap();
    let CommandUser::Other(account) = &nobody else { panic!("{nobody:?}") };
    let status = shell("cat /proc/self/status; echo \"home $HOME\"").await.unwrap();
    let status: String = serde_json::from_str(status.get()).unwrap();
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().to_owned()
    };
    let four = |id: u32| [id.to_string(), id.to_string(), id.to_string(), id.to_string()].join("\t");
    assert_eq!((value("Uid:"), value("Gid:")), (four(account.uid), four(account.gid)));
    let others = (value("Groups:"), value("NoNewPrivs:"), value("home "));
    assert_eq!(others, (String::new(), "1".to_owned(), account.home.clone()));
    for capabilities in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(value(capabilities), "0000000000000000", "{capabilities}");
    }
    // Root may still be asked for.
    let root = CommandUser::parse("root").unwrap();
    let tool = load_with(&folder.path().join("tools.toml"), &root, &|name| std::env::var(name).ok()).unwrap().remove(0);
    assert!(run(&tool, &json!({})).await.is_ok());
}

#[tokio::test]
async fn a_program_starts_in_a_folder_below_a_closed_one() {
    let closed = tempfile::tempdir().unwrap();
    let inner = closed.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let program = inner.join("program");
    fs::write(&program, "#!/bin/sh\ncat data\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(inner.join("data"), "17").unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(run(&manifest(&inner, "argv = [\"./program\"]"), &json!({})).await.unwrap().get(), "17");
}

#[tokio::test]
async fn a_missing_program_has_no_effect() {
    let folder = folder();
    fs::write(folder.path().join("data.txt"), "").unwrap();
    for program in ["no-such-program", "./no-such-program", "./data.txt"] {
        let failure = run(&manifest(folder.path(), &format!("argv = [{program:?}]")), &json!({})).await.unwrap_err();
        assert_eq!((failure.class, failure.effect_possible), (ErrorClass::Configuration, false), "{program}");
        let searched = if program.contains('/') { "" } else { " in /usr/local/sbin:" };
        let said = format!("the program {program:?} does not exist{searched}");
        assert!(
            failure.message.starts_with(&said) && failure.message.ends_with("not executable"),
            "{}",
            failure.message
        );
    }
}

/// A named pipe that one process of a test holds open: the process writes a line when it runs, and the pipe ends when it
/// dies.
struct Lifeline {
    reader: BufReader<File>,
}

impl Lifeline {
    /// Creates the pipe; the process runs `exec 9>name; echo >&9`.
    fn create(folder: &Path, name: &str) -> std::path::PathBuf {
        let path = folder.join(name);
        assert!(std::process::Command::new("mkfifo").args(["--mode=666"]).arg(&path).status().unwrap().success());
        path
    }

    /// Waits until the process runs.
    async fn started(path: std::path::PathBuf) -> Self {
        let open = move || {
            let mut reader = BufReader::new(File::open(path).unwrap());
            reader.read_line(&mut String::new()).unwrap();
            Self { reader }
        };
        tokio::task::spawn_blocking(open).await.unwrap()
    }

    /// Waits until the process is dead. Reads in another thread, so that a survivor makes the test fail instead of hang.
    async fn dead(mut self) {
        let (over, end) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = self.reader.read_to_end(&mut Vec::new());
            let _ = over.send(());
        });
        assert!(timeout(Duration::from_secs(20), end).await.is_ok(), "a process survived");
    }
}

/// A child in the program's group, and an orphan in its own session that only its environment connects to the program; all
/// ignore SIGTERM.
const FAMILY: &str = "trap '' TERM
(exec 9>child; echo >&9; exec sleep 100) &
(setsid sh -c 'exec 9>orphan; echo >&9; exec sleep 100' </dev/null >/dev/null 2>&1 &)
exec 9>program; echo >&9; exec sleep 100";

#[tokio::test]
async fn dropping_an_attempt_kills_the_whole_tree() {
    let folder = folder();
    let programs =
        ["child", "orphan", "program"].map(|name| Lifeline::create(folder.path(), name)).map(Lifeline::started);
    let tool = script(folder.path(), FAMILY);
    let attempt = tokio::spawn(async move { run(&tool, &json!({})).await });
    let programs = futures_util::future::join_all(programs).await;
    attempt.abort();
    assert!(attempt.await.unwrap_err().is_cancelled());
    wait_for_kills().await;
    for program in programs {
        program.dead().await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_behind_does_not_delay_its_result() {
    let folder = folder();
    let program = Lifeline::started(Lifeline::create(folder.path(), "daemon"));
    Lifeline::create(folder.path(), "ready");
    // The daemon holds standard output open, in its own session.
    let text = "setsid sh -c 'exec 9>daemon; echo >&9; echo > ready; exec sleep 100' &\nread _ < ready; echo '{\"done\":true}'";
    let tool = script(folder.path(), text);
    let arguments = json!({});
    let (program, answer) = tokio::join!(program, timeout(Duration::from_secs(20), run(&tool, &arguments)));
    assert_eq!(answer.unwrap().unwrap().get().trim(), r#"{"done":true}"#);
    wait_for_kills().await;
    program.dead().await;
}

/// Runs the worker of the next test, in a process that can be killed; not a test itself.
#[tokio::test]
#[ignore = "run by killing_a_worker_kills_its_program"]
async fn worker_that_is_killed() {
    let folder = std::env::var("REDIAL_TEST_FOLDER").unwrap();
    let script_text = fs::read_to_string(Path::new(&folder).join("start.sh")).unwrap();
    let _ = run(&script(Path::new(&folder), &script_text), &json!({})).await;
}

#[tokio::test]
async fn killing_a_worker_kills_its_program() {
    let folder = folder();
    let program = Lifeline::started(Lifeline::create(folder.path(), "program"));
    fs::write(folder.path().join("start.sh"), "exec 9>program; echo >&9; exec sleep 100").unwrap();
    let mut worker = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "command::worker_that_is_killed"])
        .env("REDIAL_TEST_FOLDER", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let program = program.await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    program.dead().await;
}
