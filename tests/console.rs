//! The console in a real browser: Chromium, driven through WebDriver, on real servers.
//!
//! A test reads like use:
//!
//! ```text
//! let Some(browser) = Browser::start().await else { return };
//! let page = browser.open(&gateway.url, "/console/tasks").await;
//! page.press("j").await;
//! page.sees("main", "succeeded").await;
//! browser.close().await;             // fails if the browser's log has an error
//! ```

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "console/browser.rs"]
mod browser;
#[path = "console/calls.rs"]
mod calls;
#[path = "console/corpus.rs"]
mod corpus;
#[path = "console/hostile.rs"]
mod hostile;
#[path = "console/live.rs"]
mod live;
#[path = "console/pages.rs"]
mod pages;
#[path = "console/redrives.rs"]
mod redrives;
#[path = "console/scene.rs"]
mod scene;
#[path = "console/sign_in.rs"]
mod sign_in;
#[path = "console/tasks.rs"]
mod tasks;

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn scripted_worker() {
    redial_testkit::run_scripted_worker().await;
}
