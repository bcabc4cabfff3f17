//! The console in a real browser: Chromium, driven through WebDriver, on real servers.
//!
//! A test reads like use:
//!
//! ```text
//! let Some(browser) = Browser::start().await else { return };
//! let page = browser.open(&gateway.url, "/console/tasks").await;
//! page.sees("main", "succeeded").await;
//! browser.close().await;             // fails if the browser's log has an error
//! ```

mod browser;
mod pages;
mod scene;
mod smoke;
