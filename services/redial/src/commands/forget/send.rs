//! Sends the requests of an erasure, until everything is counted or erased.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use redial_proto::{Forget, ForgetCounts, ForgetReply, OpenWork, subjects::Verb};
use redial_queue::Queue;
use uuid::Uuid;

use crate::{
    cli::ForgetArgs,
    connect::{self, Outage},
    output,
};

/// Longest wait for one reply: two statements that count may take 8 s each.
const REPLY: Duration = Duration::from_secs(30);
/// Tasks and calls from which on a bar is shown.
const MANY: u64 = 1_000;

/// One erasure. A request that is sent again continues it.
pub(super) struct Erasure<'a> {
    queue: &'a Queue,
    request: Forget,
}

#[derive(serde::Serialize)]
pub(super) struct Summary {
    pub(super) erasure: Option<Uuid>,
    pub(super) counts: ForgetCounts,
    pub(super) erased_at: Option<chrono::DateTime<chrono::Utc>>,
}

impl<'a> Erasure<'a> {
    pub(super) fn new(queue: &'a Queue, args: &ForgetArgs) -> Self {
        let request = Forget {
            conversation: args.conversation.clone(),
            erasure: Some(Uuid::now_v7()),
            cancel: args.cancel,
            ..Forget::default()
        };
        Self { queue, request }
    }

    /// Counts everything, as far as a dry run does.
    pub(super) async fn count(&self) -> anyhow::Result<ForgetReply> {
        self.send(&Forget { dry_run: true, erasure: None, ..self.request.clone() }).await
    }

    /// Erases everything; `counted` is how much that is.
    pub(super) async fn erase(&self, counted: &ForgetCounts) -> anyhow::Result<Summary> {
        let bar = progress(counted.tasks + counted.calls);
        let mut told = false;
        loop {
            let reply = self.send(&self.request).await.inspect_err(|_| {
                bar.finish_and_clear();
                output::note("the erasure was perhaps begun; dispatchers finish it then: see redial forget --list");
            })?;
            bar.set_position(reply.counts.tasks + reply.counts.calls);
            if reply.open != OpenWork::default() && !std::mem::replace(&mut told, true) {
                bar.suspend(|| output::note("waiting for cancelled tasks and calls to end"));
            }
            if reply.done {
                bar.finish_and_clear();
                let ForgetReply { counts, erased_at, .. } = reply;
                return Ok(Summary { erasure: self.request.erasure, counts, erased_at });
            }
        }
    }

    /// Sends a request until it is answered.
    async fn send(&self, request: &Forget) -> anyhow::Result<ForgetReply> {
        let verb = match request.conversation {
            Some(_) => Verb::ConversationForget,
            None => Verb::TenantForget,
        };
        let mut outage = Outage::new();
        loop {
            match self.queue.ask(verb, request, REPLY).await {
                Err(error) if error.is_retryable() => outage.wait(connect::user_error(error)).await?,
                done => return done.map_err(connect::api),
            }
        }
    }
}

fn progress(total: u64) -> ProgressBar {
    if total < MANY || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let form = "{bar:30} {pos} of {len} tasks and calls  {elapsed_precise}  eta {eta}";
    ProgressBar::new(total)
        .with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
