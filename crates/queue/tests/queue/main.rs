//! The queue on a real nats-server, one private server for each test.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail anywhere")]

mod connection;
mod faults;
mod jobs;
mod requests;
mod server;
mod streams;
mod unreadable;

use redial_proto::{CallId, Job};
use redial_queue::{OutgoingJob, Queue, QueueError};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Makes a job of a new call.
fn job(pool: &str) -> OutgoingJob {
    let job = Job { call: CallId::generate(), attempt: 1, tool: "echo".into(), bytes: 2 };
    OutgoingJob { job, consumer: pool.into(), publish_no: 1, traceparent: None }
}

/// Publishes each job as a message of its own.
async fn publish_jobs(queue: &Queue, jobs: &[OutgoingJob]) -> Vec<Result<(), QueueError>> {
    Box::pin(queue.publish_packs(&jobs.chunks(1).collect::<Vec<_>>())).await
}

fn jobs(pool: &str, count: usize) -> Vec<OutgoingJob> {
    (0..count).map(|_| job(pool)).collect()
}
