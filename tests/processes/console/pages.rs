//! Every page: what it says, no finding of axe, no error, and texts of others as texts, at both widths and in both themes.

use redial_proto::{CallState, Submission};
use redial_test_stack::{arguments, until};
use serde_json::json;

use super::{
    browser::{Browser, Page},
    scene::Scene,
};

/// Pages of which nothing is on record, and what they say to do next.
const EMPTY: [(&str, &str); 6] = [
    ("/console/tasks", "redial task"),
    ("/console/calls", "redial call"),
    ("/console/conversations", "redial task"),
    ("/console/unknown", "None"),
    ("/console/redrives", "failed calls"),
    ("/console/audit", "appear here"),
];

/// Pages without an id in their address, and what they say once there is something of each kind.
const LISTS: [(&str, &str); 18] = [
    ("/console", "Calls that ended"),
    ("/console/tasks", "Book two seats to Rome for tomorrow"),
    ("/console/calls", "parrot"),
    ("/console/calls?state=failed&not_tool=book", "Looked at"),
    ("/console/calls?not_state=failed&tool=none", "No call matches"),
    ("/console/failed", "parrot"),
    ("/console/failed/redrive?tool=parrot&state=failed", "First, count them"),
    ("/console/unknown", "unknown: look"),
    ("/console/conversations", ""),
    ("/console/tools", "Books a trip."),
    ("/console/tools/book", "/date"),
    ("/console/models", "clerk"),
    ("/console/workers", "parrot"),
    ("/console/redrives", ""),
    ("/console/audit", ""),
    ("/console/rejected", ""),
    ("/console/settings", ""),
    ("/console/sign-in", ""),
];

/// An element that no page has: wherever a text becomes markup, it is there.
const ELEMENT: &str = "x-corpus";

/// A text as models, tools and users may write it. The script of a model fills in what is between two braces.
fn hostile() -> String {
    let element = format!("<{ELEMENT} onclick=x>");
    [
        "<script>window.hacked = 1</script>",
        &element,
        "<img src=x onerror=\"window.hacked = 1\">",
        "</textarea></pre></title></svg></script>",
        &element,
        "\"' autofocus onfocus=\"window.hacked = 1\">",
        &element,
        "javascript:window.hacked=1",
        "\u{1b}[31mred\u{1b}[0m \u{9b}31m safe \u{202e}gnp.exe\u{202c} \u{2066}x\u{2069} a\u{200b}b\u{feff}c\u{2028}d",
        "请订明天的机票 مرحبا بالعالم שלום 👩\u{200d}👧",
        &"x".repeat(2_000),
    ]
    .join(" ")
}

/// A scene with something on each page: the addresses of all pages, and what each of them says.
async fn everything(scene: &Scene) -> Vec<(String, &'static str)> {
    let task = scene.task("Book two seats to Rome for tomorrow").await;
    let failed = scene.task("Book what is never right").await;
    let repeated = scene.task(&format!("repeat {}", hostile())).await;
    let unknown = scene.stack.call("risky", json!({"fail": "timeout"})).await;
    scene.stack.is(unknown, CallState::Unknown).await;
    let retried = scene.stack.call("tool", json!({"fail": "unavailable", "times": 2})).await;
    scene.stack.is(retried, CallState::Succeeded).await;
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("<{ELEMENT}>{n}"), json!(n))).collect();
    let many = scene.stack.call("parrot", json!({"text": many})).await;
    let said = scene.stack.call("parrot", json!({"text": hostile(), "fail": true})).await;
    let wrong = Submission::new("book", arguments(json!({"city": "Rome", "date": "tomorrow", "seats": 1})));
    let refused = scene.stack.submit(&wrong).await.call.unwrap();
    for call in [many, said] {
        scene.stack.ended(call).await;
    }
    scene.stack.wait_until_empty().await;
    let conversation = format!("SELECT conversation FROM tasks WHERE id = '{task}'");
    let conversation: String = scene.stack.value(&conversation).await;
    let page = |path: String, says: &'static str| (format!("/console{path}"), says);
    let mut pages = vec![
        page(format!("/tasks/{task}"), "fed back without running (invalid arguments): /date"),
        page(format!("/tasks/{failed}"), "The model did not get book right"),
        page(format!("/tasks/{task}/corrections"), "right after 1 correction"),
        page(format!("/tasks/{task}/conversation"), "Book two seats"),
        page(format!("/tasks/{task}/turns/2"), "What the model saw in turn 2"),
        page(format!("/tasks/{task}/replay"), "Every decision would be made again as it was"),
        page(format!("/calls?contains=%3C{ELEMENT}%3E"), "parrot"),
        page(format!("/calls/{retried}"), "unavailable"),
        page(format!("/calls/{many}"), "parrot"),
        page(format!("/calls/{said}"), "请订明天的机票"),
        page(format!("/calls/{said}/again"), "parrot"),
        page(format!("/calls/{refused}"), "Never ran: invalid arguments"),
        page(format!("/calls/{refused}/again"), "/date"),
        page(format!("/calls/{unknown}"), "unknown"),
        page(format!("/calls/{unknown}/again"), "risky"),
        page(format!("/conversations/{conversation}"), "Book two seats"),
        page(format!("/conversations/{conversation}/erase"), ""),
    ];
    pages.extend(LISTS.map(|(path, says)| (path.to_owned(), says)));
    for part in ["", "/corrections", "/conversation", "/replay", "/turns/1", "/turns/2"] {
        pages.push(page(format!("/tasks/{repeated}{part}"), ""));
    }
    pages
}

/// What is wrong with a page, whatever it shows.
async fn wrong(page: &Page<'_>) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    let is = async |script: &str| page.eval(script).await == true;
    if !is("return window.hacked === undefined;").await {
        wrong.push("a script ran");
    }
    let elements = format!("{ELEMENT}, main script, main img, main iframe, main [onclick], main [onerror]");
    if page.count(&elements).await > 0 {
        wrong.push("a text became an element");
    }
    if !is("return ![...document.querySelectorAll('a[href]')].some(a => a.protocol === 'javascript:');").await {
        wrong.push("a link runs a script");
    }
    if !is("return !/[\\u001b\\u009b\\u200b\\u2028\\u202c\\u202e\\u2066\\u2069\\ufeff]/.test(document.body.innerText);")
        .await
    {
        wrong.push("a character that cannot be seen is there as it is");
    }
    if !is("return document.documentElement.scrollWidth <= document.documentElement.clientWidth;").await {
        wrong.push("it is too wide");
    }
    if page.bytes().await >= 1_000_000 {
        wrong.push("it is too large");
    }
    wrong
}

/// All pages in a browser take minutes: this is for `./dev nightly`.
#[tokio::test]
#[ignore = "nightly: all pages"]
async fn every_page_is_whole_and_axe_finds_nothing() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let page = browser.open(&scene.gateway.url, "/console").await;
    assert!(page.bytes().await < 150_000, "the first page is small: {}", page.bytes().await);
    for (path, says) in EMPTY {
        page.go(path).await;
        page.sees("main", says).await;
    }
    // The look finds what it looks for.
    let broken = "const e = document.createElement('x-corpus'); e.append('\\u202e'); document.body.append(e); window.hacked = 1;";
    page.eval(broken).await;
    assert_eq!(wrong(&page).await.len(), 3);
    let pages = everything(&scene).await;
    let mut found = Vec::new();
    for (width, theme) in [(1280, "light"), (390, "dark")] {
        browser.looks(width, theme).await;
        for (path, says) in &pages {
            page.go(path).await;
            page.eval("document.querySelectorAll('details').forEach(d => d.open = true);").await;
            page.sees("main", says).await;
            let findings = page.axe().await.into_iter().chain(wrong(&page).await.into_iter().map(str::to_owned));
            found.extend(findings.map(|one| format!("{path} at {width}, {theme}: {one}")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    // Pages are whole without their scripts.
    browser.scripts(false).await;
    for (path, says) in &pages[1..9] {
        page.go(path).await;
        let whole = async || page.driver.source().await.unwrap().contains(says).then_some(());
        until(&format!("{path} is whole"), whole).await;
    }
    browser.close().await;
    scene.finish().await;
}
