//! Private Postgres and NATS servers: started on a folder and a free port of 127.0.0.1, supervised, and stopped with this
//! process.
//!
//! `redial dev` and the tests use them. Nothing here talks SQL or knows a stream: the servers are processes.
//!
//! What holds for both:
//! - a folder belongs to one server: a lock that the server's own processes hold excludes a second one, and makes a
//!   restart after a crash wait for the remaining processes of the first, and end those that do not end by themselves;
//! - port and password are chosen once and stored in the folder, so a restarted server keeps its address;
//! - the processes die with this one, even if it is killed by SIGKILL (Linux; elsewhere only on an orderly end);
//! - output goes to a log file in the folder, and a failed start quotes its last lines.

mod error;
mod folder;
mod nats;
mod port;
mod postgres;
mod process;
mod programs;
mod remains;
mod running;
mod supervise;
mod user;

pub use error::ServerError;
pub use nats::{Member, Nats, NatsConfig};
pub use port::any_free;
pub use postgres::{Postgres, PostgresConfig, Upstream, settings_for_machine};
pub use process::Process;
pub use programs::{check_programs, nats_server, postgres_program};
pub use rustix::process::Signal;
pub use supervise::{Server, Supervised};

/// Runs work that blocks on files and processes on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels such a task, and then nothing is polled any more.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}
