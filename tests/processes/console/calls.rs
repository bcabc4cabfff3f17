//! Calls: searched, looked at, and run again.

use redial_proto::{CallId, CallState, Submission};
use redial_testkit::{arguments, until};
use serde_json::json;

use super::{browser::Browser, scene::Scene};

#[tokio::test]
async fn calls_are_searched_by_what_they_hold_and_exported() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    for n in 0..3 {
        let submission = Submission::new("tool", arguments(json!({"n": n, "output": "{\"city\": \"Paris\"}"})));
        let call = scene.stack.accepted(&submission).await;
        scene.stack.ended(call).await;
    }
    scene.failed(2).await;
    scene.stack.wait_until_empty().await;
    let page = browser.open(&scene.gateway.url, "/console/calls").await;
    until("five calls are listed", async || (page.count("a.row.call").await == 5).then_some(())).await;
    page.click(".chips a.chip[href*='state=failed']").await;
    page.is_at("/console/calls?state=failed").await;
    assert_eq!(page.count("a.row.call").await, 2);
    page.click(".chips a.chip[aria-current]").await;
    page.click("details.filter > summary").await;
    page.fill("input[name=output]", "/city=Paris").await;
    page.click("form.fields button").await;
    page.is_at("/console/calls?output=%2Fcity%3DParis").await;
    assert_eq!(page.count("a.row.call").await, 3);
    page.sees(".searched", "Looked at 5 calls").await;
    // The file has the same filter.
    let lines = page.eval("return fetch([...document.querySelectorAll('.acts a')].find(a => a.textContent === 'JSONL').href).then(r => r.text());").await;
    let lines: Vec<&str> = lines.as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[3], "{\"exported\":3,\"complete\":true}");
    page.go("/console/calls?not_state=succeeded&not_class=business_rule").await;
    page.sees("main", "No call matches").await;
    page.go("/console/calls?statee=failed").await;
    page.sees("main", "Something here is not allowed").await;
    page.sees("main", "statee").await;
    let refused = browser.errors().await;
    assert!(refused.iter().all(|error| error.contains("422")), "{refused:?}");
    browser.close().await;
    scene.finish().await;
}

#[tokio::test]
async fn an_ended_call_is_edited_and_runs_again_once() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let wrong = Submission::new("book", arguments(json!({"city": "Rome", "date": "tomorrow", "seats": 1})));
    let refused = scene.stack.submit(&wrong).await.call.unwrap();
    let page = browser.open(&scene.gateway.url, &format!("/console/calls/{refused}")).await;
    page.sees(".verdict", "Never ran: invalid arguments").await;
    page.sees(".verdict", "What to do").await;
    page.click(".acts a.main").await;
    page.sees("#checked", "/date").await;
    page.fill("#arguments", "{\"city\": \"Rome\", \"date\": \"2026-12-01\", \"seats\": 1}").await;
    page.sees("#checked", "Fits the schema").await;
    let other = page.eval("return document.querySelector('form[action$=again]').action;").await;
    page.click("form[action$=again] button").await;
    page.sees(".notice", "runs again").await;
    page.sees("main", "It runs call").await;
    let new: CallId = page.address().await.split(['/', '?']).nth(3).unwrap().parse().unwrap();
    scene.stack.is(new, CallState::Succeeded).await;
    page.sees(".verdict", "Succeeded").await;
    // Somebody else had the same page open.
    page.go(other
        .as_str()
        .unwrap()
        .split_once("/console")
        .map(|(_, rest)| format!("/console{rest}"))
        .unwrap()
        .as_str())
        .await;
    page.sees("main", "It runs again already").await;
    page.click(".verdict a").await;
    page.is_at(&format!("/console/calls/{new}")).await;
    browser.close().await;
    scene.finish().await;
}

#[tokio::test]
async fn an_unknown_outcome_is_run_again_only_by_somebody_who_looked() {
    let Some(browser) = Browser::start().await else { return };
    let scene = Scene::start().await;
    let call = scene.stack.call("risky", json!({"fail": "timeout"})).await;
    scene.stack.is(call, CallState::Unknown).await;
    let page = browser.open(&scene.gateway.url, "/console/unknown").await;
    page.sees("article.card", "unknown: look").await;
    page.click("article.card .acts a").await;
    page.click("form[action$=again] button.main").await;
    assert!(page.address().await.ends_with("/again"), "the tick is needed");
    page.fill("#arguments", "{}").await;
    page.click("input[name=twice]").await;
    page.click("form[action$=again] button.main").await;
    page.sees(".notice", "runs again").await;
    page.go("/console/unknown").await;
    page.sees("main", "Run again by somebody").await;
    page.go("/console/audit").await;
    page.sees("main", "calls.redrive").await;
    browser.close().await;
    scene.finish().await;
}
