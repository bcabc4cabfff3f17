//! Streams of server-sent events.
//!
//! What is durable has an id that every gateway reproduces from the record: of a task the step and the decision within it, of a
//! call the attempt, of a tenant's feed a time behind which nothing can appear any more. So a stream can be resumed at any
//! gateway, without a gap. What is not durable (a model's text while it is written, where a call stands now) has no id.
//!
//! A stream is pulled: nothing is read for a reader that has not taken what was read before.

mod call;
mod feed;
mod id;
mod stream;
mod task;

pub(crate) use self::{
    call::follow_call,
    feed::{follow_feed, time_id},
    id::After,
    stream::{MEDIA, Progress, ServerSentEvent, Source, answer},
    task::follow_task,
};
