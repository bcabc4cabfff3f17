//! What every change has to keep: somebody signs in, and watches a task.

use redial_proto::UserRole;
use redial_test_stack::{ToolEvent, token};

use super::{browser::Browser, scene::Scene};

#[tokio::test]
async fn somebody_signs_in_and_watches_a_task() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let gateway = scene.stack.serve_http_with(|_| ()).await;
    let reader = token(scene.stack.queue(), &[UserRole::Read]).await;
    let task = scene.begin("Please wait.").await;
    let path = format!("/console/tasks/{task}");
    let page = browser.open(&gateway.url, &path).await;
    page.is_at(&format!("/console/sign-in?next={}", path.replace('/', "%2F"))).await;
    page.fill("input[name=token]", "rdl_nonsense").await;
    page.click("form button.main").await;
    page.sees(".broken", "unknown, expired or revoked").await;
    page.fill("input[name=token]", &reader.text()).await;
    page.click("form button.main").await;
    page.is_at(&path).await;

    scene.stack.ledger.reaches(ToolEvent::Started, 1).await;
    page.sees("#c1\\.1", "tool").await;
    page.click("#c1\\.1 > summary").await;
    page.eval("window.here = 17;").await;
    std::fs::write(&scene.hold, "").unwrap();
    page.sees(".state", "succeeded").await;
    page.sees("main", "It is done.").await;
    assert_eq!(page.eval("return window.here;").await, 17, "the page was never loaded again");
    assert_eq!(page.count("#c1\\.1[open]").await, 1, "what was open stays open");
    assert_eq!(page.axe().await, Vec::<String>::new());
    // The page knows no secret, and its scripts none either.
    assert!(!page.driver.source().await.unwrap().contains(&reader.text()));
    assert_eq!(page.eval("return document.cookie;").await, "");

    page.go("/console/settings").await;
    page.click("form[action$=sign-out] button").await;
    page.is_at("/console/sign-in").await;
    let refused = browser.errors().await;
    assert!(refused.iter().all(|error| error.contains("401")), "{refused:?}");
    browser.close().await;
    gateway.stop();
    scene.finish().await;
}
