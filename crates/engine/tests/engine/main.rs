//! What the engine decides, through its public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod call;
mod feedback;
mod task_plan;
mod tasks;
mod view;
mod window;
