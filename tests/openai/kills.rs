//! Everything that runs is killed in turn while the official client works: each response ends once, no `unsafe` tool runs
//! twice, and `keyed` ones keep their key.

use std::{net::TcpListener, time::Duration};

use redial_proto::ToolEffect;
use redial_testkit::{Process, Servers, Stack, ToolEvent, start_scripted_worker, unique_path};

use crate::python;

const LEASE: &str = "3s";
const LONG: Duration = Duration::from_mins(2);

const SCRIPT: &str = r#"
[[rule]]
when = { last = "user", contains = "ask" }
calls = [
    { name = "keyed", arguments = { n = 1, before_ms = 100 } },
    { name = "ask_user", arguments = { question = "Which?" } },
]

[[rule]]
when = { last = "user" }
calls = [
    { name = "keyed", arguments = { n = 2, before_ms = 100, after_ms = 100 } },
    { name = "unsafe", arguments = { n = 3, before_ms = 200, after_ms = 100 } },
]

[[rule]]
text = "done"
"#;

/// The processes of Redial, each on the stack's servers.
struct Roles {
    agents: String,
    port: u16,
}

impl Roles {
    fn dispatcher(&self, stack: &Stack) -> Process {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(["dispatcher", "--lease", LEASE, "--agents", &self.agents]);
            command.args(["--nats-url", stack.servers.nats_url(), "--database-url", stack.servers.database_url()]);
        })
    }

    fn gateway(&self, stack: &Stack) -> Process {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(["gateway", "--without-token", "--listen", &format!("127.0.0.1:{}", self.port)]);
            command.args(["--nats-url", stack.servers.nats_url(), "--database-url", stack.servers.database_url()]);
        })
    }
}

fn worker(stack: &Stack) -> Process {
    start_scripted_worker(stack.servers.nats_url(), &stack.ledger, Duration::from_mins(1))
}

#[tokio::test]
async fn each_response_ends_once_while_everything_is_killed_in_turn() {
    let Some(python) = python::find() else { return };
    let mut stack = Stack::on(Servers::start_own().await).await;
    stack.redeliver_after(Duration::from_secs(2)).await;
    stack.workers_will_die();
    let (agents, models, script) = (unique_path("agents"), unique_path("models"), unique_path("script"));
    std::fs::write(&agents, "[agents.travel]\nmodel = \"small\"\ntools = [\"*\"]\n").unwrap();
    std::fs::write(&script, SCRIPT).unwrap();
    std::fs::write(
        &models,
        format!("[models.small]\nprovider = \"script\"\nscript = {:?}\n", script.display().to_string()),
    )
    .unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let roles = Roles { agents: agents.display().to_string(), port: free.local_addr().unwrap().port() };
    drop(free);
    let mut dispatcher = roles.dispatcher(&stack);
    dispatcher.line("Dispatcher started").await;
    let mut tools = worker(&stack);
    stack.serve_models(&models).await;
    stack.offered(&ToolEffect::ALL.map(ToolEffect::as_str)).await;
    let mut gateway = roles.gateway(&stack);
    gateway.line("Gateway started").await;

    let mut client = tokio::process::Command::new(python);
    client.arg(python::folder().join("kills.py")).env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true);
    client.env("GATEWAYS", format!("http://127.0.0.1:{}/v1", roles.port));
    client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let client = client.spawn().unwrap();

    let begun = |count| stack.ledger.reaches(ToolEvent::Started, count);
    begun(6).await;
    gateway.kill().await;
    gateway = roles.gateway(&stack);
    begun(14).await;
    dispatcher.kill().await;
    dispatcher = roles.dispatcher(&stack);
    begun(22).await;
    tools.kill().await;
    tools = worker(&stack);
    stack.ledger.reaches(ToolEvent::Started, 30).await;
    stack.servers.kill_nats().await;
    stack.servers.start_nats().await;
    stack.ledger.reaches(ToolEvent::Started, 38).await;
    stack.servers.kill_postgres().await;
    stack.servers.start_postgres().await;

    let ended = client.wait_with_output().await.unwrap();
    let (said, failed) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}\n{failed}\n{}", gateway.output());
    stack.drained(LONG).await;
    for role in [&gateway, &dispatcher, &tools] {
        assert!(role.runs(), "{}", role.output());
    }
    // The checker looks for unsafe tools that ran twice, and for keys that changed.
    let evidence = stack.finish().await;
    assert_eq!(evidence.tasks.len(), 40, "a task for each key");
}
