//! A Chromium without a window.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use redial_test_stack::{Process, until};
use serde_json::{Value, json};
use thirtyfour::{
    By, ChromiumLikeCapabilities as _, DesiredCapabilities, WebDriver, common::log::LoggingPrefsLogLevel,
    error::WebDriverErrorInner,
};

/// If it is set, these tests are skipped with a note.
const SKIP: &str = "REDIAL_SKIP_BROWSER";
/// How long a page may take to show something.
const PATIENCE: Duration = Duration::from_mins(3);

/// A browser of its own, with an empty profile.
pub(crate) struct Browser {
    driver: WebDriver,
    _process: Process,
    _profile: tempfile::TempDir,
}

/// A page of a gateway in a browser.
pub(crate) struct Page<'a> {
    pub(crate) driver: &'a WebDriver,
    base: String,
}

impl Browser {
    /// Starts one; `None` if these tests are to be skipped. Panics with what to install if there is none, because a test that did
    /// not run must not look like one that passed.
    pub(crate) async fn start() -> Option<Self> {
        if std::env::var_os(SKIP).is_some() {
            // Bypasses the capture of the test's output.
            let note = format!("NOT RUN: the console in a browser, because {SKIP} is set\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            return None;
        }
        redial_http::install_crypto();
        let (driver, chromium) =
            (program("REDIAL_CHROMEDRIVER", "chromedriver"), program("REDIAL_CHROMIUM", "chromium"));
        let profile = tempfile::tempdir().unwrap();
        let (process, port) = start_driver(&driver, profile.path()).await;
        let mut wanted = DesiredCapabilities::chrome();
        wanted.set_binary(chromium.to_str().unwrap()).unwrap();
        let folder = format!("--user-data-dir={}", profile.path().display());
        for argument in FLAGS.iter().copied().chain([folder.as_str()]) {
            wanted.add_arg(argument).unwrap();
        }
        wanted.set_logging_prefs("browser", LoggingPrefsLogLevel::All).unwrap();
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await.unwrap();
        Some(Self { driver, _process: process, _profile: profile })
    }

    /// Opens a page.
    pub(crate) async fn open(&self, base: &str, path: &str) -> Page<'_> {
        let page = Page { driver: &self.driver, base: base.to_owned() };
        page.go(path).await;
        page
    }

    /// Errors that the browser's log got since the last look.
    pub(crate) async fn errors(&self) -> Vec<String> {
        let entries = self.driver.browser_log().await.unwrap();
        entries.into_iter().filter(|entry| entry.level == "SEVERE").map(|entry| entry.message).collect()
    }

    /// Ends it. Panics if its log has an error: of a script, of the policy, or of something that could not be loaded.
    pub(crate) async fn close(self) {
        let errors = self.errors().await;
        self.driver.quit().await.unwrap();
        assert!(errors.is_empty(), "the browser's log has errors: {errors:#?}");
    }

    /// How wide the window is, and the theme that the system has.
    pub(crate) async fn looks(&self, width: u32, theme: &str) {
        let height = if width < 600 { 844 } else { 860 };
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let cdp = self.driver.cdp();
        cdp.send_raw("Emulation.setDeviceMetricsOverride", metrics).await.unwrap();
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        cdp.send_raw("Emulation.setEmulatedMedia", media).await.unwrap();
    }

    /// Switches scripts of pages off or on.
    pub(crate) async fn scripts(&self, on: bool) {
        self.driver.cdp().send_raw("Emulation.setScriptExecutionDisabled", json!({"value": !on})).await.unwrap();
    }
}

/// What ChromeDriver says before its port.
const STARTED: &str = "was started successfully on port ";

/// ChromeDriver takes a free port of IPv6 and then the same of IPv4, which may be in use; then it ends, and is started again.
async fn start_driver(driver: &Path, home: &Path) -> (Process, u16) {
    for _ in 0..5 {
        let process = Process::start(driver, |command| {
            command.arg("--port=0").env("HOME", home);
        });
        let started = until("ChromeDriver has started", async || process.output().contains(STARTED).then_some(()));
        tokio::select! {
            () = started => {}
            _ended = process.ended() => {}
        }
        let said = process.output();
        if let Some((_, port)) = said.split_once(STARTED) {
            let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
            return (process, digits.parse().unwrap());
        }
        assert!(said.contains("port not available"), "ChromeDriver did not start:\n{said}");
    }
    panic!("ChromeDriver found no port in five tries")
}

/// Without a window, without a sandbox for root, and without asking anybody outside.
const FLAGS: [&str; 9] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
];

impl Page<'_> {
    /// Goes to another page.
    pub(crate) async fn go(&self, path: &str) {
        self.driver.goto(format!("{}{path}", self.base)).await.unwrap();
    }

    /// The address without the gateway's.
    pub(crate) async fn address(&self) -> String {
        let url = self.driver.current_url().await.unwrap();
        url.as_str().trim_start_matches(&self.base).to_owned()
    }

    /// Waits until the address is this.
    pub(crate) async fn is_at(&self, wanted: &str) {
        self.waits(async || if self.address().await == wanted { Ok(()) } else { Err(format!("this is not {wanted}")) })
            .await;
    }

    /// Waits until a check passes; otherwise fails with what it found last.
    async fn waits(&self, check: impl AsyncFn() -> Result<(), String>) {
        let mut last = String::new();
        let passed = tokio::time::timeout(PATIENCE, async {
            while let Err(found) = check().await {
                last = found;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let passed = passed.await.is_ok();
        assert!(passed, "at {}: {last}", self.address().await);
    }

    /// The text of an element that is there; empty if it is not.
    pub(crate) async fn text(&self, css: &str) -> String {
        self.eval(&format!("const e = document.querySelector({}); return e ? e.innerText : '';", json!(css)))
            .await
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Waits until an element has this text.
    pub(crate) async fn sees(&self, css: &str, text: &str) {
        self.waits(async || {
            let shown = self.text(css).await;
            if shown.contains(text) { Ok(()) } else { Err(format!("{css} does not have {text:?}: {shown}")) }
        })
        .await;
    }

    /// How many elements there are.
    pub(crate) async fn count(&self, css: &str) -> u64 {
        self.eval(&format!("return document.querySelectorAll({}).length;", json!(css))).await.as_u64().unwrap()
    }

    /// Clicks on an element, once it is there and can be clicked.
    pub(crate) async fn click(&self, css: &str) {
        until(&format!("{css} can be clicked"), async || {
            let element = self.driver.find(By::Css(css)).await.ok()?;
            element.scroll_into_view().await.ok()?;
            match element.click().await {
                Ok(()) => Some(()),
                Err(error) => match error.as_inner() {
                    // A page that comes meanwhile replaces it.
                    WebDriverErrorInner::StaleElementReference(_) | WebDriverErrorInner::ElementClickIntercepted(_) => {
                        None
                    }
                    _ => panic!("{css}: {error}"),
                },
            }
        })
        .await;
    }

    /// Writes into a field instead of what it holds.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        // A field is there before it can be written into.
        until("a field can be written into", async || {
            let field = self.driver.find(By::Css(css)).await.ok()?;
            field.clear().await.ok()?;
            field.send_keys(text).await.ok()
        })
        .await;
    }

    /// The value of a script, whose `return` it is.
    pub(crate) async fn eval(&self, script: &str) -> Value {
        self.driver.execute(script, Vec::new()).await.unwrap().json().clone()
    }

    /// What axe finds wrong.
    pub(crate) async fn axe(&self) -> Vec<String> {
        let script = std::fs::read_to_string(axe_file()).expect("axe.min.js is there: ./dev test downloads it");
        // The policy of the page forbids scripts of others; the driver's own are no part of it.
        self.driver.execute(script, Vec::new()).await.unwrap();
        let run = "const done = arguments[arguments.length - 1]; \
                   axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}).then(found => \
                   done(found.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(' | '))))";
        let found = self.driver.execute_async(run, Vec::new()).await.unwrap().json().clone();
        serde_json::from_value(found).unwrap()
    }

    /// Bytes of the page with everything that it loaded.
    pub(crate) async fn bytes(&self) -> u64 {
        let script = "return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource')) \
                      .filter(e => !e.name.includes('/v1/')).reduce((sum, e) => sum + e.decodedBodySize, 0);";
        self.eval(script).await.as_f64().map_or(0, |bytes| format!("{bytes:.0}").parse().unwrap())
    }
}

/// A program by its variable, else on the path. Panics with what to install.
fn program(variable: &str, name: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "{name} is missing. Please install it (Debian: chromium chromium-driver), name it in {variable}, or set {SKIP}=1 to go \
             without the console's tests in a browser."
        )
    })
}

/// The checker of accessibility that `./dev test` downloads.
fn axe_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.redial/axe/axe.min.js")
}
