//! The decisions about a task: model turn → calls → results → next turn, until there is an answer.
//!
//! [`step`] is the state machine: it takes a task and an event, changes the task, and says what has to be done.
//! [`plan`] wraps it for a dispatcher: it takes what is on record of a task, with its inbox, and returns the transition
//! to write. [`replay`] feeds recorded steps to the same state machine.

mod answers;
mod asking;
mod calls;
mod chains;
mod continued;
mod cut_off;
mod event;
mod inputs;
mod memory;
mod plan;
mod replay;
mod state;
mod step;
mod turn_call;

pub use self::{
    event::{Event, Proposed, Reply, Verdict},
    inputs::Aside,
    plan::{Known, Needs, Paused, PlanContext, Planned, Planning, plan},
    replay::{Difference, Recorded, replay},
    state::Task,
    step::{Step, StepContext, WantedCall, WantedTurn, step},
};
