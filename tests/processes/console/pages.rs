//! Every page: without a finding of axe, without an error, at both widths and in both themes.

use redial_proto::CallState;
use serde_json::json;

use super::{browser::Browser, scene::Scene};

/// A scene with something on each page, and the addresses of all pages with a name.
async fn everything(scene: &Scene) -> Vec<(&'static str, String)> {
    let task = scene.task("Book two seats to Rome for tomorrow").await;
    let failed = scene.task("Book what is never right").await;
    let unknown = scene.stack.call("risky", json!({"fail": "timeout"})).await;
    scene.stack.is(unknown, CallState::Unknown).await;
    let retried = scene.stack.call("tool", json!({"fail": "unavailable", "times": 2})).await;
    scene.stack.is(retried, CallState::Succeeded).await;
    scene.failed(3).await;
    scene.stack.wait_until_empty().await;
    let conversation: String = sqlx::query_scalar("SELECT conversation FROM tasks WHERE id = $1")
        .bind(task.0)
        .fetch_one(scene.stack.db())
        .await
        .unwrap();
    vec![
        ("overview", "/console".to_owned()),
        ("tasks", "/console/tasks".to_owned()),
        ("task", format!("/console/tasks/{task}")),
        ("task-failed", format!("/console/tasks/{failed}")),
        ("corrections", format!("/console/tasks/{task}/corrections")),
        ("conversation-of-task", format!("/console/tasks/{task}/conversation")),
        ("turn", format!("/console/tasks/{task}/turns/2")),
        ("replay", format!("/console/tasks/{task}/replay")),
        ("calls", "/console/calls".to_owned()),
        ("calls-filtered", "/console/calls?state=failed&not_tool=book".to_owned()),
        ("call", format!("/console/calls/{retried}")),
        ("call-unknown", format!("/console/calls/{unknown}")),
        ("again", format!("/console/calls/{unknown}/again")),
        ("failed", "/console/failed".to_owned()),
        ("confirm", "/console/failed/redrive?tool=tool&state=failed".to_owned()),
        ("unknown", "/console/unknown".to_owned()),
        ("conversations", "/console/conversations".to_owned()),
        ("conversation", format!("/console/conversations/{conversation}")),
        ("erase", format!("/console/conversations/{conversation}/erase")),
        ("tools", "/console/tools".to_owned()),
        ("tool", "/console/tools/book".to_owned()),
        ("models", "/console/models".to_owned()),
        ("workers", "/console/workers".to_owned()),
        ("redrives", "/console/redrives".to_owned()),
        ("audit", "/console/audit".to_owned()),
        ("rejected", "/console/rejected".to_owned()),
        ("settings", "/console/settings".to_owned()),
        ("sign-in", "/console/sign-in".to_owned()),
    ]
}

#[tokio::test]
async fn axe_finds_nothing_on_any_page() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let pages = everything(&scene).await;
    let page = browser.open(&scene.gateway.url, "/console").await;
    let mut found = Vec::new();
    for (width, theme) in [(1280, "light"), (390, "dark")] {
        browser.looks(width, theme).await;
        for (name, path) in &pages {
            page.go(path).await;
            page.eval("document.querySelectorAll('details').forEach(d => d.open = true);").await;
            found.extend(page.axe().await.into_iter().map(|one| format!("{name} at {width}, {theme}: {one}")));
            let wide =
                page.eval("return document.documentElement.scrollWidth - document.documentElement.clientWidth;").await;
            if wide.as_i64() > Some(0) {
                found.push(format!("{name} is {wide} px too wide at {width}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
    scene.finish().await;
}

#[tokio::test]
async fn the_first_page_is_small_and_nothing_moves() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    everything(&scene).await;
    let page = browser.open(&scene.gateway.url, "/console").await;
    assert!(page.bytes().await < 150_000, "{}", page.bytes().await);
    for path in ["/console", "/console/tasks", "/console/calls", "/console/failed"] {
        // What goes on meanwhile may move something; a page that moves by itself does so each time.
        let mut shifts = Vec::new();
        while shifts.last().is_none_or(|shift| *shift >= 0.01) {
            assert!(shifts.len() < 5, "{path}: {shifts:?}");
            page.go(path).await;
            shifts.push(page.shifts_and_longest_task().await.0);
        }
    }
    browser.close().await;
    scene.finish().await;
}

#[tokio::test]
async fn empty_pages_say_what_to_do_next() {
    let Some(browser) = Browser::start().await else { return };
    let stack = redial_testkit::Stack::start().await;
    let gateway = stack.serve_http().await;
    let page = browser.open(&gateway.url, "/console").await;
    page.sees("main", "redial call echo").await;
    for (path, text) in [
        ("/console/tasks", "redial task"),
        ("/console/calls", "redial call"),
        ("/console/conversations", "redial task"),
        ("/console/tools", "tools.toml"),
        ("/console/workers", "redial worker"),
        ("/console/unknown", "None"),
        ("/console/redrives", "failed calls"),
        ("/console/audit", "appear here"),
        ("/console/models", "redial task"),
    ] {
        page.go(path).await;
        page.sees("main", text).await;
    }
    browser.close().await;
    drop(gateway);
    stack.finish().await;
}

/// `REDIAL_PICTURES=FOLDER cargo test -p redial --test processes pictures -- --ignored` keeps a picture of every page there.
#[tokio::test]
#[ignore = "it makes pictures to look at"]
async fn pictures() {
    let Some(browser) = Browser::start().await else { return };
    let folder = std::path::PathBuf::from(std::env::var_os("REDIAL_PICTURES").expect("REDIAL_PICTURES names a folder"));
    std::fs::create_dir_all(&folder).unwrap();
    let scene = Scene::start().await;
    let pages = everything(&scene).await;
    let page = browser.open(&scene.gateway.url, "/console").await;
    for (width, theme) in [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")] {
        browser.looks(width, theme).await;
        for (name, path) in &pages {
            page.go(path).await;
            page.picture(&folder.join(format!("{name}-{width}-{theme}.png"))).await;
        }
    }
    browser.close().await;
    scene.finish().await;
}
