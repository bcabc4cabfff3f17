//! Tasks: the timeline, the corrections, what the model saw, the replay.

use redial_testkit::until;

use super::{browser::Browser, scene::Scene};

#[tokio::test]
async fn a_task_tells_what_happened_and_why() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let task = scene.task("Book two seats to Rome for tomorrow").await;
    let page = browser.open(&scene.gateway.url, "/console/tasks").await;
    page.sees("a.row.task", "Book two seats to Rome for tomorrow").await;
    // With keys only.
    page.press("j").await;
    page.press("Enter").await;
    page.is_at(&format!("/console/tasks/{task}")).await;
    page.sees(".verdict", "Answered").await;
    page.sees(".verdict", "1 correction").await;
    page.sees("#c1\\.1", "fed back without running (invalid arguments): /date").await;
    page.sees("#c1\\.1", "max_corrections").await;
    page.click("#c2\\.1 > summary").await;
    page.sees("#c2\\.1 .inside", "ran once").await;
    page.sees("#c2\\.1 .inside", "booked").await;
    // A step has an address of its own.
    page.go(&format!("/console/tasks/{task}#c1.1")).await;
    assert_eq!(page.count("#c1\\.1:target").await, 1);

    page.click(".tabs a[href$='/corrections']").await;
    page.sees(".chain", "What the model sent").await;
    page.sees(".chain .broke", "/date").await;
    page.sees(".chain .broke", "2 of 2 corrections left").await;
    assert_eq!(page.count(".chain .try").await, 2);
    page.sees(".try:last-child .changed", "2026-12-01").await;
    page.sees("section[data-key=chain-1] h2", "right after 1 correction").await;

    page.click(".tabs a[href$='/conversation']").await;
    page.sees("#m1, #m2", "Book two seats").await;
    page.click(".tabs a[href$='/replay']").await;
    page.sees(".verdict:not([data-key])", "Every decision would be made again as it was").await;
    let record = page
        .eval("return fetch(document.querySelector('.acts a.button').href).then(r => r.json()).then(r => r.task);")
        .await;
    assert_eq!(record, task.to_string(), "the regression test is the record of this task");

    page.go(&format!("/console/tasks/{task}/turns/2")).await;
    page.sees("main", "What the model saw in turn 2").await;
    page.sees(".message.tool", "/date").await;
    page.sees("main", "Pruned").await;
    page.driver.back().await.unwrap();
    page.is_at(&format!("/console/tasks/{task}/replay")).await;
    page.driver.forward().await.unwrap();
    page.is_at(&format!("/console/tasks/{task}/turns/2")).await;
    browser.close().await;
    scene.finish().await;
}

#[tokio::test]
async fn a_task_that_fails_says_what_to_do() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let task = scene.task("Book what is never right").await;
    let page = browser.open(&scene.gateway.url, &format!("/console/tasks/{task}")).await;
    page.sees(".verdict", "The model did not get book right").await;
    page.sees(".verdict", "max_corrections = 2").await;
    page.sees(".verdict", "What to do").await;
    page.click(".verdict a").await;
    page.is_at(&format!("/console/tasks/{task}#c3.1")).await;
    page.go("/console/models").await;
    page.sees("main", "clerk").await;
    page.go("/console/tools/book").await;
    page.sees("main", "/date").await;
    page.sees("main", "100 %").await;
    browser.close().await;
    scene.finish().await;
}

#[tokio::test]
async fn keys_lead_everywhere_and_pages_are_whole_without_a_script() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let task = scene.task("Book two seats to Rome for tomorrow").await;
    let page = browser.open(&scene.gateway.url, "/console").await;
    page.sees("main", "Calls that ended").await;
    page.press("?").await;
    page.sees("#keys[open]", "next and previous row").await;
    page.click("#keys button").await;
    page.press("gt").await;
    page.is_at("/console/tasks").await;
    page.press("/").await;
    page.press(&task.to_string()).await;
    page.press("Enter").await;
    page.is_at(&format!("/console/tasks/{task}")).await;
    page.press("/").await;
    page.press("tool:book /city=Rome").await;
    page.press("Enter").await;
    page.is_at("/console/calls?tool=book&argument=%2Fcity%3DRome").await;
    page.sees(".rows", "book").await;

    browser.scripts(false).await;
    for path in
        ["/console", "/console/tasks", &format!("/console/tasks/{task}"), "/console/calls", "/console/tools/book"]
    {
        page.go(path).await;
        // A browser under load may have no document yet when it says that it is there.
        until(&format!("{path} is whole"), async || {
            page.driver.source().await.unwrap().to_lowercase().contains("book").then_some(())
        })
        .await;
    }
    browser.scripts(true).await;
    browser.close().await;
    scene.finish().await;
}
