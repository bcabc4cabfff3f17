//! The ways in that the README shows work as they are printed. The program `nats` is rarely installed, so what it would send is
//! sent over a plain connection: the subject and the payload that a shell makes of each line. Without curl those lines are
//! skipped, with a note.

use std::{fs, io::Write as _, path::Path};

use redial_test_stack::{Process, RawNats};
use serde_json::Value;
use tokio::process::Command;

use super::folder;
use crate::{python, python_worker::python as package};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// Subject and payload of each line `nats request SUBJECT 'PAYLOAD'`.
fn requests(readme: &str) -> Vec<(String, String)> {
    let request = |line: &str| {
        let (subject, quoted) = line.strip_prefix("nats request ")?.split_once(' ')?;
        // Nothing in single quotes means anything to a shell.
        let payload = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
        assert!(!payload.contains('\''), "{line}");
        Some((subject.to_owned(), payload.to_owned()))
    };
    readme.lines().filter_map(request).collect()
}

/// Where the README says that the gateway is.
const GATEWAY: &str = "http://127.0.0.1:8700";

/// The flags of the line `./dev up …` that starts what the examples use. The files that it names are in the repository.
fn flags(readme: &str) -> Vec<String> {
    let flags = readme.lines().find_map(|line| line.strip_prefix("./dev up ")).unwrap();
    let root = Path::new(README).parent().unwrap();
    flags.split(' ').map(|word| word.replace("examples/", &format!("{}/examples/", root.display()))).collect()
}

/// The `redial dev` that the README starts, once it is ready, in this folder and with a gateway on a free port.
async fn dev(readme: &str, folder: &Path) -> Process {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.redial/servers");
    let dev = Process::start(Path::new(env!("CARGO_BIN_EXE_redial")), |command| {
        command.args(["dev", "--listen", "127.0.0.1:0"]).args(flags(readme)).current_dir(folder);
        // The folder is elsewhere, so the programs that `./dev setup` unpacked are not found from it.
        let programs = [("REDIAL_NATS_SERVER", "nats-server"), ("REDIAL_POSTGRES_BIN", "postgres/bin")];
        for (variable, program) in programs.into_iter().filter(|(variable, _)| std::env::var_os(variable).is_none()) {
            let program = servers.join(program);
            if let Ok(found) = fs::canonicalize(program) {
                command.env(variable, found);
            }
        }
    });
    dev.line("Ctrl-C stops everything").await;
    dev
}

/// The lines of a shell or the program in Python that begin with these words, and what the README says that they print.
fn example<'a>(readme: &'a str, language: &str, start: &str) -> (&'a str, &'a str) {
    let fence = format!("```{language}\n");
    let mut blocks = readme.split(&fence).skip(1);
    let block = blocks.find(|block| block.starts_with(start)).unwrap_or_else(|| panic!("no example {start}"));
    let (lines, rest) = block.split_once("\n```\n\n```\n").unwrap();
    (lines, rest.split_once("```").unwrap().0)
}

/// What lines of a shell print.
async fn printed(lines: &str) -> String {
    output(Command::new("sh").args(["-c", lines])).await
}

/// The names of an object's fields.
fn names(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

/// What a command prints that must succeed.
async fn output(command: &mut Command) -> String {
    let output = command.kill_on_drop(true).output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_lines_of_the_readme_work_as_printed() {
    let readme = fs::read_to_string(README).unwrap();
    let folder = folder();
    let dev = dev(&readme, folder.path()).await;
    let line = dev.line("  HTTP ").await;
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    the_command_line(&readme, folder.path()).await;
    nats(&readme, folder.path()).await;
    with_the_package(&readme, &url).await;
    with_openais_package(&readme, &url).await;
    with_curl(&readme, &url).await;
    dev.interrupt();
    assert!(dev.ended().await.success(), "{}", dev.output());
}

async fn with_curl(readme: &str, url: &str) {
    if Command::new("curl").arg("--version").output().await.is_err() {
        // Bypasses the capture of the test's output.
        std::io::stderr().write_all(b"NOT RUN: the curl lines of the README, because curl is not installed\n").unwrap();
        return;
    }
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let (line, shown) = example(readme, "sh", "curl -s http");
    let (call, shown) = (json(&printed(&line.replace(GATEWAY, url)).await), json(shown));
    assert_eq!((&call["state"], &call["output"], names(&call)), (&shown["state"], &shown["output"], names(&shown)));

    let (line, shown_lines) = example(readme, "sh", "seq 3 | ");
    let answer = printed(&line.replace(GATEWAY, url)).await;
    let results: Vec<Value> = answer.lines().map(json).collect();
    assert_eq!(results.len(), shown_lines.lines().count());
    assert!(results.iter().all(|result| result["status"] == "accepted"), "{answer}");

    let (lines, shown_events) = example(readme, "sh", "CALL=");
    let lines = lines.replace(GATEWAY, url).replace(shown["call"].as_str().unwrap(), call["call"].as_str().unwrap());
    let events = printed(&lines).await;
    let without_data = |text: &str| {
        text.lines().filter(|line| !line.starts_with("data:")).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    };
    assert_eq!(without_data(&events), without_data(shown_events));
}

async fn with_the_package(readme: &str, url: &str) {
    let Some(python) = package::find() else { return };
    let (program, shown) = example(readme, "python", "from redial import Client\n");
    let mut command = std::process::Command::new(&python);
    package::set_up(&mut command);
    command.args(["-c", program]).env("REDIAL_URL", url);
    assert_eq!(output(&mut command.into()).await, shown);
}

async fn with_openais_package(readme: &str, url: &str) {
    let Some(python) = python::find() else { return };
    let (program, shown) = example(readme, "python", "from openai import OpenAI\n");
    assert!(program.contains(GATEWAY), "{program}");
    let mut command = Command::new(python);
    command.args(["-c", &program.replace(GATEWAY, url)]);
    // The client reads a key and an address from variables of this name.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OPENAI_")) {
        command.env_remove(name);
    }
    assert_eq!(output(&mut command).await, shown);
}

/// It finds the `redial dev` of the folder that it runs in.
async fn the_command_line(readme: &str, folder: &Path) {
    let (line, shown) = example(readme, "sh", "target/debug/redial call ");
    let line = line.replace("target/debug/redial", env!("CARGO_BIN_EXE_redial"));
    assert_eq!(output(Command::new("sh").args(["-c", &line]).current_dir(folder)).await, shown);
}

async fn nats(readme: &str, folder: &Path) {
    let requests = requests(readme);
    let (_, shown) = example(readme, "sh", "eval \"$(target/debug/redial env)\"");
    assert_eq!((requests.len(), shown.lines().count()), (2, 2));
    let eval = readme.lines().find(|line| line.starts_with("eval \"$(target/debug/redial env)\"")).unwrap();
    let eval = eval.replace("target/debug/redial", env!("CARGO_BIN_EXE_redial"));
    // As the program `nats` finds them.
    let script =
        format!("{eval}\nprintf %s \"nats://$NATS_USER:$NATS_PASSWORD@${{NATS_URL#nats://}}\"; command -V nats >&2");
    let url = Command::new("sh").args(["-c", &script]).current_dir(folder).output().await.unwrap().stdout;
    let mut nats = RawNats::connect(&String::from_utf8(url).unwrap()).await;
    for ((subject, payload), shown) in requests.iter().zip(shown.lines()) {
        let answer: Value = serde_json::from_str(&nats.request(subject, payload).await.body).unwrap();
        let shown: Value = serde_json::from_str(shown).unwrap();
        assert_eq!(answer["status"], "accepted", "{subject}: {answer}");
        // What the call waits for comes with it if its worker is just starting.
        let answered = names(&answer);
        assert!(names(&shown).iter().all(|name| answered.contains(name)), "{subject}: {answer}");
    }
}

#[tokio::test]
async fn the_files_of_a_task_of_ones_own_in_the_readme_have_no_mistake() {
    let readme = fs::read_to_string(README).unwrap();
    let folder = folder();
    for name in ["models.toml", "agents.toml"] {
        let (_, rest) = readme.split_once(&format!("```toml\n# {name}\n")).unwrap();
        fs::write(folder.path().join(name), rest.split_once("```").unwrap().0).unwrap();
    }
    output(Command::new(env!("CARGO_BIN_EXE_redial")).args(["dev", "--check"]).current_dir(folder.path())).await;
}
