//! Private Postgres and NATS servers: started on a folder and a free port of 127.0.0.1, watched, and stopped with us.
//!
//! `redial dev` and the tests use them. Nothing here talks SQL or knows a stream: the servers are processes.
//!
//! What holds for both:
//! - one folder is one server: a lock that the server's own processes hold keeps a second one out, and makes a restart
//!   after a crash wait for what is left of the first;
//! - port and password are made once and remembered in the folder, so a restart keeps its address;
//! - the processes die with us, even if we are killed by SIGKILL (Linux; elsewhere only on an orderly end);
//! - output goes to a log file in the folder, and a failed start quotes its last lines.

mod error;
mod folder;
mod nats;
mod port;
mod postgres;
mod process;
mod programs;
mod running;
mod supervise;
mod user;

pub use error::ServerError;
pub use nats::{Nats, NatsConfig};
pub use postgres::{Postgres, PostgresConfig};
pub use process::Process;
pub use rustix::process::Signal;
pub use supervise::{Server, Supervised};

/// Runs what waits on files and processes where it holds up no other task.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that is being shut down cancels such a task, and then nothing is polled any more.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}
