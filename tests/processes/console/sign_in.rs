//! Browsers sign in with a token; a session is what its token is.

use redial_proto::UserRole;
use redial_testkit::token;

use super::{browser::Browser, scene::Scene};

#[tokio::test]
async fn somebody_signs_in_with_a_token_and_sees_what_it_may() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    scene.failed(1).await;
    scene.stack.wait_until_empty().await;
    let gateway = scene.stack.serve_http_with(|_| ()).await;
    let reader = token(scene.stack.queue(), &[UserRole::Read]).await;
    let page = browser.open(&gateway.url, "/console/failed?tool=tool").await;
    page.is_at("/console/sign-in?next=%2Fconsole%2Ffailed%3Ftool%3Dtool").await;
    page.fill("input[name=token]", "rdl_nonsense").await;
    page.click("form button.main").await;
    page.sees(".broken", "unknown, expired or revoked").await;
    page.fill("input[name=token]", &reader.text()).await;
    page.click("form button.main").await;
    page.is_at("/console/failed?tool=tool").await;
    page.sees("main", "Running calls again needs the role operate").await;
    assert_eq!(page.count(".acts a.main").await, 0);
    // The page knows no secret, and its scripts none either.
    let source = page.driver.source().await.unwrap();
    assert!(!source.contains(&reader.text()));
    assert_eq!(page.eval("return document.cookie;").await, "");
    // What the role does not allow is refused, also to somebody who knows the address.
    page.go("/console/settings/tokens/aaaaaaaaaaaa/revoke").await;
    page.sees("main", "needs the role admin").await;
    page.go("/console/settings").await;
    page.sees("main", "signed in with a token").await;
    page.click("form[action$=sign-out] button").await;
    page.is_at("/console/sign-in").await;
    page.go("/console/tasks").await;
    page.is_at("/console/sign-in?next=*").await;
    let refused = browser.errors().await;
    assert!(refused.iter().all(|error| error.contains("401")), "{refused:?}");
    browser.close().await;
    gateway.stop();
    scene.finish().await;
}
