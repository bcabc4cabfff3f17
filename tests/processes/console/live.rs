//! A page moves with what happens, and goes on by itself after whatever was killed.

use std::{net::TcpListener, path::Path, time::Duration};

use redial_proto::{AgentRef, CallState, Submission, TaskState, TaskSubmission, ToolEffect};
use redial_testkit::{
    Process, Servers, Stack, ToolEvent, arguments, scripted_tool, start_scripted_worker, unique_path, until,
};
use serde_json::json;

use super::{
    browser::Browser,
    scene::{clerk, models},
};

/// Two calls that run until the file `hold` exists, then one more.
fn script(hold: &Path) -> String {
    let hold = hold.display();
    format!(
        r#"
[[rule]]
when = {{ last = "user" }}
calls = [
    {{ name = "keyed", arguments = {{ n = 1, hold = "{hold}" }} }},
    {{ name = "read", arguments = {{ n = 2, hold = "{hold}" }} }},
]

[[rule]]
when = {{ tool = "keyed", contains = "attempt" }}
calls = [{{ name = "idempotent", arguments = {{ n = 3, before_ms = 500 }} }}]

[[rule]]
text = "It is done."
"#
    )
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, as it happens")]
async fn a_task_is_watched_while_everything_is_killed_in_turn() {
    let Some(browser) = Browser::start().await else { return };
    let mut stack = Stack::on(Servers::start_own().await).await;
    stack.redeliver_after(Duration::from_secs(2)).await;
    stack.workers_will_die();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (nats, database) = (stack.servers.nats_url().to_owned(), stack.servers.database_url().to_owned());
    let start = |arguments: &[&str]| {
        Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
            command.args(arguments).args(["--nats-url", &nats, "--database-url", &database]);
        })
    };
    let listen = format!("127.0.0.1:{port}");
    let dispatcher = || start(&["dispatcher", "--lease", "3s"]);
    let gateway = || start(&["gateway", "--without-token", "--listen", &listen]);
    let mut dispatchers = vec![dispatcher()];
    dispatchers[0].line("Dispatcher started").await;
    let ledger = stack.ledger.clone();
    let worker = || start_scripted_worker(&nats, &ledger, Duration::from_mins(1));
    let mut workers = vec![worker()];
    let folder = tempfile::tempdir().unwrap();
    let hold = folder.path().join("hold");
    let models = models(folder.path(), &script(&hold));
    stack.serve_models(&models).await;
    stack.offered(&ToolEffect::ALL.map(ToolEffect::as_str)).await;
    let mut gateways = vec![gateway()];
    gateways[0].line("Gateway started").await;
    let task = stack.task(&TaskSubmission::new("Do it.", AgentRef::Inline(Box::new(clerk())))).await;
    let page = browser.open(&format!("http://{listen}"), &format!("/console/tasks/{task}")).await;
    page.sees("#c1\\.1", "keyed").await;
    page.click("#c1\\.1 > summary").await;
    page.eval("window.here = 17;").await;

    stack.ledger.reaches(ToolEvent::Started, 2).await;
    workers.pop().unwrap().kill().await;
    workers.push(worker());
    gateways.pop().unwrap().kill().await;
    until("the banner is there", async || (page.count("#stream:not([hidden])").await == 1).then_some(())).await;
    gateways.push(gateway());
    gateways[0].line("Gateway started").await;
    dispatchers.pop().unwrap().kill().await;
    dispatchers.push(dispatcher());
    stack.ledger.reaches(ToolEvent::Started, 4).await;
    stack.servers.kill_nats().await;
    stack.servers.start_nats().await;
    stack.servers.kill_postgres().await;
    stack.servers.start_postgres().await;
    std::fs::write(&hold, "").unwrap();
    stack.task_is(task, TaskState::is_terminal).await;

    page.sees(".state", "succeeded").await;
    page.sees("main", "It is done.").await;
    assert_eq!(page.eval("return window.here;").await, 17, "the page was never loaded again");
    assert_eq!(page.count("#c1\\.1[open]").await, 1, "what was open stays open");
    until("the banner is gone", async || (page.count("#stream[hidden]").await == 1).then_some(())).await;
    // What the page shows is what the database says.
    let rows: Vec<(i32, i32, i32)> =
        sqlx::query_as("SELECT turn, call_index, attempt FROM calls WHERE task_id = $1 AND call_index > 0")
            .bind(task.0)
            .fetch_all(stack.db())
            .await
            .unwrap();
    assert_eq!(page.count(".lane.tool").await, rows.len() as u64);
    for (turn, index, attempts) in rows {
        let lane = format!("#c{turn}\\.{index}");
        let bars = page.count(&format!("{lane} .strip g")).await;
        assert_eq!(bars, u64::try_from(attempts).unwrap(), "{lane}: a bar for each attempt");
    }
    stack.drained(Duration::from_mins(2)).await;
    for role in gateways.iter().chain(&dispatchers).chain(&workers) {
        assert!(role.runs(), "{}", role.output());
    }
    drop((gateways, dispatchers, workers));
    browser.close_after_outages().await;
    stack.finish().await;
}

#[tokio::test]
async fn rows_come_by_themselves_and_nothing_that_a_reader_holds_is_lost() {
    let Some(browser) = Browser::start().await else { return };
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http().await;
    let first = stack.call("tool", json!({"n": 0})).await;
    stack.is(first, CallState::Succeeded).await;
    let page = browser.open(&gateway.url, "/console/calls").await;
    page.press("j").await;
    let focus = page.eval("return document.activeElement.getAttribute('href');").await;
    assert_eq!(focus, format!("/console/calls/{first}"));
    page.eval("window.here = 17;").await;
    // Two hundred a second, for three seconds.
    let hold = unique_path("hold");
    let waiting = stack.accepted(&Submission::new("tool", arguments(json!({"n": 1, "hold": hold})))).await;
    for burst in 0..12 {
        let submission = |n: usize| Submission::new("tool", arguments(json!({"n": 100 + burst * 50 + n})));
        let batch: Vec<Submission> = (0..50).map(submission).collect();
        stack.try_submit_all(&batch).await.unwrap();
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    std::fs::write(&hold, "").unwrap();
    stack.is(waiting, CallState::Succeeded).await;
    stack.wait_until_empty().await;
    until("the newest fifty are shown, all ended", async || {
        let shown = page.eval("return [...document.querySelectorAll('a.row.call .state')].filter(s => s.innerText === 'succeeded').length;").await;
        (shown.as_u64()? >= 50).then_some(())
    })
    .await;
    assert_eq!(page.eval("return window.here;").await, 17);
    assert_eq!(page.eval("return document.activeElement.getAttribute('href');").await, focus, "the focus stays");
    let (shift, longest) = page.shifts_and_longest_task().await;
    let note = format!("601 calls in 3 s: layout shift {shift:.4}, longest task of the main thread {longest:.0} ms\n");
    std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes()).unwrap();
    browser.close().await;
    drop(gateway);
    stack.finish().await;
}
