//! What happened in a task or a call, rendered for a reader. Records go in, lines come out; nothing here does I/O.
//!
//! The text of each event is written once, in [`step`] for tasks and in [`call`] for calls. `redial watch` and `redial task
//! --wait` print the events of a task while they happen, `redial show` prints all of them afterwards, and [`diagram`] draws
//! them.

pub(crate) mod call;
pub(crate) mod diagram;
mod entry;
mod page;
#[cfg(test)]
pub(crate) mod sample;
mod step;
mod task;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod totals;
mod wrap;

pub(crate) use self::{
    entry::{Entry, Event, Ink},
    page::Page,
    step::Printed,
    task::TaskTimeline,
    wrap::Wrap,
};
