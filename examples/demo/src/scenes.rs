//! The scenes, one file each. A scene returns what it saw, in a line; an error means that something did not hold.

mod command_tool;
mod http_tool;
mod killed_servers;
mod killed_worker;
mod native_tool;
mod refusals;
mod thousand_calls;

use std::time::{Duration, Instant};

use anyhow::bail;
use chrono::{Days, NaiveDate, TimeDelta, Utc};

use crate::{output, stage::Stage};

/// A scene that takes longer has failed. All of them together take half of it.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What is played.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scene {
    HttpTool,
    CommandTool,
    NativeTool,
    Refusals,
    KilledWorker,
    KilledServers,
    ThousandCalls,
}

impl Scene {
    /// Every scene, in the order of the play.
    pub(crate) const ALL: [Self; 7] = [
        Self::HttpTool,
        Self::CommandTool,
        Self::NativeTool,
        Self::Refusals,
        Self::KilledWorker,
        Self::KilledServers,
        Self::ThousandCalls,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::HttpTool => "HTTP tool",
            Self::CommandTool => "command tools",
            Self::NativeTool => "native tool",
            Self::Refusals => "bad arguments",
            Self::KilledWorker => "killed worker",
            Self::KilledServers => "killed servers",
            Self::ThousandCalls => "1,000 calls",
        }
    }
}

/// Plays a scene and tells how it went; true if everything held.
pub(crate) async fn play(scene: Scene, number: usize, stage: &mut Stage) -> bool {
    output::under_way(number, scene.title());
    let began = Instant::now();
    let result = tokio::time::timeout(TIME_LIMIT, act(scene, stage)).await;
    let result = result.unwrap_or_else(|_| bail!("did not come to an end within {} s", TIME_LIMIT.as_secs()));
    let seconds = began.elapsed().as_secs_f64();
    match result {
        Ok(seen) => output::verdict(number, scene.title(), Ok(&seen), seconds),
        Err(error) => {
            let text = format!("{error:#}; logs: {}/*.log", stage.folder().display());
            output::verdict(number, scene.title(), Err(&text), seconds);
            return false;
        }
    }
    true
}

async fn act(scene: Scene, stage: &mut Stage) -> anyhow::Result<String> {
    match scene {
        Scene::HttpTool => http_tool::play(stage).await,
        Scene::CommandTool => command_tool::play(stage).await,
        Scene::NativeTool => native_tool::play(stage).await,
        Scene::Refusals => refusals::play(stage).await,
        Scene::KilledWorker => killed_worker::play(stage).await,
        Scene::KilledServers => killed_servers::play(stage).await,
        Scene::ThousandCalls => thousand_calls::play(stage).await,
    }
}

/// A day on which one can still book.
fn next_month() -> NaiveDate {
    let today = Utc::now().date_naive();
    today.checked_add_days(Days::new(30)).unwrap_or(NaiveDate::MAX)
}

/// `1.25 s`.
fn seconds(time: TimeDelta) -> String {
    format!("{:.2} s", time.as_seconds_f64())
}
