//! Calls without a model: what every tool call gets, and what it survives.

mod command_tool;
mod http_tool;
mod killed_servers;
mod killed_worker;
mod native_tool;
mod refusals;
mod thousand_calls;

use super::seconds;
use crate::stage::Stage;

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
    pub(super) const ALL: [Self; 7] = [
        Self::HttpTool,
        Self::CommandTool,
        Self::NativeTool,
        Self::Refusals,
        Self::KilledWorker,
        Self::KilledServers,
        Self::ThousandCalls,
    ];

    pub(super) const fn title(self) -> &'static str {
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

pub(super) async fn play(scene: Scene, stage: &mut Stage) -> anyhow::Result<String> {
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
