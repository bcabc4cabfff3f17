//! A stage of the pipeline, which takes messages as they come.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::task::JoinSet;

use super::pipe::{self, Pipe};

pub(super) type Batch = Vec<Bytes>;

/// How long no message may arrive.
const PATIENCE: Duration = Duration::from_secs(20);

/// Works on so many messages together, and on so many such batches at once, until so many calls were worked on. `work`
/// returns the number of its calls.
pub(super) async fn run<F>(
    pipe: &Pipe,
    (together, at_once): (usize, usize),
    calls: u32,
    work: impl Fn(Batch) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<u32>> + Send + 'static,
{
    let mut messages = pipe.messages(together).await?;
    let done = Arc::new(AtomicU32::new(0));
    let (mut tasks, mut heard) = (JoinSet::new(), Instant::now());
    while done.load(Ordering::Acquire) < calls {
        while tasks.len() >= at_once {
            tasks.join_next().await.transpose()?.transpose()?;
        }
        let taken = tokio::select! {
            taken = messages.next() => taken,
            Some(ended) = tasks.join_next() => {
                ended??;
                continue;
            }
        };
        let batch = pipe::payloads(&taken);
        if batch.is_empty() {
            let done = done.load(Ordering::Acquire);
            anyhow::ensure!(
                heard.elapsed() < PATIENCE,
                "no message for {PATIENCE:?}; {done} of {calls} calls are done"
            );
            continue;
        }
        heard = Instant::now();
        let (work, done) = (work(batch), done.clone());
        tasks.spawn(async move {
            let calls = work.await?;
            pipe::ack(taken).await;
            done.fetch_add(calls, Ordering::Release);
            anyhow::Ok(())
        });
    }
    let done = done.load(Ordering::Acquire);
    anyhow::ensure!(done == calls, "the baseline did {done} of {calls} calls");
    Ok(())
}
