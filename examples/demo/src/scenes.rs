//! The scenes, one file each. A scene returns what it saw, in a line; an error means that something did not hold.

mod agents;
mod calls;

use std::time::{Duration, Instant};

use anyhow::bail;
use chrono::TimeDelta;

use crate::{output, stage::Stage};

/// A scene that takes longer has failed. All of them together take less.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The same with a real model, which may run on a small machine.
const PATIENT_TIME_LIMIT: Duration = Duration::from_secs(1800);

/// The parts of the play.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Agents,
    Calls,
}

/// What is played.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scene {
    Agents(agents::Scene),
    Calls(calls::Scene),
}

impl Act {
    /// Every act, in the order of the play.
    pub(crate) const ALL: [Self; 2] = [Self::Agents, Self::Calls];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Agents => "Act 1: models work on tasks, with tools",
            Self::Calls => "Act 2: calls without a model, and what they survive",
        }
    }

    /// Its scenes, in order.
    pub(crate) fn scenes(self) -> Vec<Scene> {
        match self {
            Self::Agents => agents::Scene::ALL.map(Scene::Agents).into(),
            Self::Calls => calls::Scene::ALL.map(Scene::Calls).into(),
        }
    }
}

impl Scene {
    const fn title(self) -> &'static str {
        match self {
            Self::Agents(scene) => scene.title(),
            Self::Calls(scene) => scene.title(),
        }
    }
}

/// Plays a scene and tells how it went; true if everything held.
pub(crate) async fn play(scene: Scene, number: usize, stage: &mut Stage) -> bool {
    output::under_way(number, scene.title());
    let began = Instant::now();
    let limit = if stage.is_scripted() { TIME_LIMIT } else { PATIENT_TIME_LIMIT };
    let result = tokio::time::timeout(limit, act(scene, stage)).await;
    let result = result.unwrap_or_else(|_| bail!("did not come to an end within {} s", limit.as_secs()));
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
        Scene::Agents(scene) => agents::play(scene, stage).await,
        Scene::Calls(scene) => calls::play(scene, stage).await,
    }
}

/// `1.25 s`.
fn seconds(time: TimeDelta) -> String {
    format!("{:.2} s", time.as_seconds_f64())
}
