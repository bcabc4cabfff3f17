//! The `nats` lines of the README work as they are. The program `nats` is rarely installed, so what it would send is sent
//! over a plain connection: the subject and the payload that a shell makes of each line.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use redial_testkit::{Process, RawNats};
use serde_json::Value;
use tokio::process::Command;

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

#[tokio::test]
async fn the_nats_lines_of_the_readme_are_accepted() {
    let readme = fs::read_to_string(README).unwrap();
    let requests = requests(&readme);
    assert_eq!(requests.len(), 2);
    let folder = tempfile::tempdir().unwrap();
    // If the test runs as root, Postgres runs as another user, who needs access.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    for name in ["models.toml", "agents.toml"] {
        let (_, rest) = readme.split_once(&format!("```toml\n# {name}\n")).unwrap();
        fs::write(folder.path().join(name), rest.split_once("```").unwrap().0).unwrap();
    }
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.redial/servers");
    let dev = Process::start(Path::new(env!("CARGO_BIN_EXE_redial")), |command| {
        command.arg("dev").current_dir(folder.path());
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
    let eval = readme.lines().find(|line| line.starts_with("eval \"$(target/debug/redial env)\"")).unwrap();
    let eval = eval.replace("target/debug/redial", env!("CARGO_BIN_EXE_redial"));
    // As the program `nats` finds them.
    let script =
        format!("{eval}\nprintf %s \"nats://$NATS_USER:$NATS_PASSWORD@${{NATS_URL#nats://}}\"; command -V nats >&2");
    let url = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().await.unwrap().stdout;
    let mut nats = RawNats::connect(&String::from_utf8(url).unwrap()).await;
    for (subject, payload) in &requests {
        let answer = nats.request(subject, payload.as_bytes()).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["status"], "accepted", "{subject}: {answer}");
    }
    dev.interrupt();
    assert!(dev.ended().await.success(), "{}", dev.output());
}
