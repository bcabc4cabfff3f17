//! Everything that runs is killed in turn while the official client works: each response ends once, no `unsafe` tool runs
//! twice, and `keyed` ones keep their key.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use redial_proto::{CallState, ToolEffect};
use redial_testkit::{Process, Servers, Stack, ToolEvent, start_scripted_worker, unique_path};
use serde_json::json;

use super::python;

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
    servers: [String; 4],
    agents: String,
    ports: [u16; 2],
}

impl Roles {
    fn of(stack: &Stack) -> Self {
        let agents = unique_path("agents");
        std::fs::write(&agents, "[agents.travel]\nmodel = \"small\"\ntools = [\"*\"]\n").unwrap();
        // Both are held until both are known.
        let free = [0; 2].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
        let ports = free.each_ref().map(|free| free.local_addr().unwrap().port());
        let (nats, database) = (stack.servers.nats_url(), stack.servers.database_url());
        let servers = ["--nats-url", nats, "--database-url", database].map(str::to_owned);
        Self { servers, agents: agents.display().to_string(), ports }
    }

    fn dispatcher(&self) -> Process {
        self.start(&["dispatcher", "--lease", LEASE, "--agents", &self.agents])
    }

    fn gateway(&self, number: usize) -> Process {
        let listen = format!("127.0.0.1:{}", self.ports[number]);
        self.start(&["gateway", "--without-token", "--listen", &listen])
    }

    fn start(&self, arguments: &[&str]) -> Process {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(arguments).args(&self.servers);
        })
    }

    fn client(&self, python: &Path) -> tokio::process::Child {
        let mut client = tokio::process::Command::new(python);
        client.arg(python::folder().join("kills.py")).env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true);
        client.env("GATEWAYS", self.ports.map(|port| format!("http://127.0.0.1:{port}/v1")).join(" "));
        client.stdout(Stdio::piped()).stderr(Stdio::piped());
        client.spawn().unwrap()
    }
}

fn worker(stack: &Stack) -> Process {
    start_scripted_worker(stack.servers.nats_url(), &stack.ledger, Duration::from_mins(1))
}

fn write_models() -> PathBuf {
    let (models, script) = (unique_path("models"), unique_path("script"));
    std::fs::write(&script, SCRIPT).unwrap();
    let script = script.display().to_string();
    std::fs::write(&models, format!("[models.small]\nprovider = \"script\"\nscript = {script:?}\n")).unwrap();
    models
}

#[tokio::test]
async fn each_response_ends_once_while_everything_is_killed_in_turn() {
    let Some(python) = python::find() else { return };
    let mut stack = Stack::on(Servers::start_own().await).await;
    stack.redeliver_after(Duration::from_secs(2)).await;
    stack.workers_will_die();
    let roles = Roles::of(&stack);
    let mut dispatcher = roles.dispatcher();
    dispatcher.line("Dispatcher started").await;
    let mut tools = worker(&stack);
    stack.serve_models(&write_models()).await;
    stack.offered(&ToolEffect::ALL.map(ToolEffect::as_str)).await;
    let mut gateways = [roles.gateway(0), roles.gateway(1)];
    for gateway in &gateways {
        gateway.line("Gateway started").await;
    }
    let client = roles.client(&python);

    let ledger = stack.ledger.clone();
    let begun = |count| ledger.reaches(ToolEvent::Started, count);
    begun(6).await;
    gateways[0].kill().await;
    // The client meets it dead, and goes on with the other one.
    begun(9).await;
    gateways[0] = roles.gateway(0);
    begun(14).await;
    dispatcher.kill().await;
    dispatcher = roles.dispatcher();
    begun(18).await;
    gateways[1].kill().await;
    begun(21).await;
    gateways[1] = roles.gateway(1);
    begun(25).await;
    // One that certainly runs when its worker dies.
    let hold = unique_path("hold");
    let running = stack.call("read", json!({"n": 1_000, "hold": hold})).await;
    stack.is(running, CallState::Running).await;
    tools.kill().await;
    std::fs::write(&hold, "").unwrap();
    tools = worker(&stack);
    begun(32).await;
    stack.servers.kill_nats().await;
    stack.servers.start_nats().await;
    begun(40).await;
    stack.servers.kill_postgres().await;
    stack.servers.start_postgres().await;

    let ended = client.wait_with_output().await.unwrap();
    let (said, failed) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}\n{failed}\n{}\n{}", gateways[0].output(), gateways[1].output());
    stack.drained(LONG).await;
    for role in gateways.iter().chain([&dispatcher, &tools]) {
        assert!(role.runs(), "{}", role.output());
    }
    let broken: [u32; 2] = serde_json::from_str(said.trim()).unwrap();
    assert!(broken.iter().all(|count| *count > 0), "no request met a dead gateway: {broken:?}");
    let with_key = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tasks WHERE key LIKE 'kill-%'");
    assert_eq!(with_key.fetch_one(stack.db()).await.unwrap(), 30, "a task for each key");
    // The checker looks for unsafe tools that ran twice, and for keys that changed.
    let evidence = stack.finish().await;
    assert!(evidence.lost() > 0, "the worker was killed between two calls");
    assert!(evidence.tasks.len() >= 40, "{}", evidence.tasks.len());
}
