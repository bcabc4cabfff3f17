//! All calls that match a filter run again.

use std::time::Duration;

use redial_testkit::until;

use super::{browser::Browser, scene::Scene};

#[tokio::test]
async fn five_thousand_failed_calls_run_again_by_a_filter() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    scene.failed(5_000).await;
    scene.stack.drained(Duration::from_mins(2)).await;
    let page = browser.open(&scene.gateway.url, "/console/failed").await;
    page.sees("section[data-key=groups]", "5\u{202f}000").await;
    page.click("section[data-key=groups] a").await;
    page.is_at("/console/failed?tool=tool&class=business_rule").await;
    page.click(".acts a.main").await;
    page.sees("main", "First, count them").await;
    page.click("form[action$=count] button").await;
    page.sees("h2", "5\u{202f}000 calls would run again").await;
    page.fill("input[name=rate]", "10000").await;
    // Without the tick nothing is ordered.
    page.click("button.danger").await;
    assert!(page.address().await.starts_with("/console/failed/redrive?"));
    page.click("input[name=confirmed]").await;
    page.click("button.danger").await;
    page.is_at("/console/redrives/*").await;
    page.sees("main", "5\u{202f}000 of 5\u{202f}000 calls").await;
    page.sees("main", "done").await;
    let again: i64 = sqlx::query_scalar("SELECT count(*) FROM calls WHERE redrive_of IS NOT NULL")
        .fetch_one(scene.stack.db())
        .await
        .unwrap();
    assert_eq!(again, 5_000);
    // Back, and once more: it is the same order.
    page.driver.back().await.unwrap();
    page.sees("h2", "5\u{202f}000 calls would run again").await;
    // The browser may have kept the tick.
    page.eval("document.querySelector('input[name=confirmed]').checked = true;").await;
    page.click("button.danger").await;
    page.is_at("/console/redrives/*").await;
    page.go("/console/redrives").await;
    assert_eq!(page.count("tbody tr").await, 2, "the count and the order");
    page.go("/console/audit?verb=redrives.create").await;
    page.sees("main", "redrives.create").await;
    scene.stack.drained(Duration::from_mins(2)).await;
    until("the overview has all of them", async || {
        page.go("/console").await;
        page.text("main").await.contains("10\u{202f}000").then_some(())
    })
    .await;
    browser.close().await;
    scene.finish().await;
}
