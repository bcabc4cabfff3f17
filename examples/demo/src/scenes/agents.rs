//! Models work on tasks. With a scripted model, a scene holds the record against the script; of a real one it demands
//! only what holds for every model, and tells what it did.

mod crash;
mod fallback;
mod flight_booking;
mod hidden_rule;
mod parallel_calls;
mod react;
mod tool_message;

use crate::stage::Stage;

/// What is played.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scene {
    FlightBooking,
    HiddenRule,
    Fallback,
    ToolMessage,
    React,
    ParallelCalls,
    Crash,
}

impl Scene {
    /// Every scene, in the order of the play.
    pub(super) const ALL: [Self; 7] = [
        Self::FlightBooking,
        Self::HiddenRule,
        Self::Fallback,
        Self::ToolMessage,
        Self::React,
        Self::ParallelCalls,
        Self::Crash,
    ];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::FlightBooking => "flight booking",
            Self::HiddenRule => "hidden rule",
            Self::Fallback => "fallback",
            Self::ToolMessage => "tool message",
            Self::React => "ReAct",
            Self::ParallelCalls => "parallel calls",
            Self::Crash => "two crashes",
        }
    }
}

pub(super) async fn play(scene: Scene, stage: &mut Stage) -> anyhow::Result<String> {
    match scene {
        Scene::FlightBooking => flight_booking::play(stage).await,
        Scene::HiddenRule => hidden_rule::play(stage).await,
        Scene::Fallback => fallback::play(stage).await,
        Scene::ToolMessage => tool_message::play(stage).await,
        Scene::React => react::play(stage).await,
        Scene::ParallelCalls => parallel_calls::play(stage).await,
        Scene::Crash => crash::play(stage).await,
    }
}
