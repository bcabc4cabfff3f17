//! Accepts connections.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

use crate::stall::Stall;

/// Who has not sent the head of a request by then is cut off.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of the head of a request, and of what is read ahead of its body.
const BUFFER: usize = 64 * 1024;
/// Who takes nothing of an answer for so long is cut off.
const STALL: Duration = Duration::from_mins(1);
/// Bytes of an answer that the kernel holds for a connection, about; it takes twice as many with its own. Left alone it would
/// hold 4 MB, as much as most answers have: nobody would see that nothing is read, and nothing would count.
const UNSENT: usize = 128 * 1024;
/// Connections at a time.
const CONNECTIONS: usize = 100_000;
/// After an error that another connection would meet, too: no file descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the shutdown; then lets requests finish for `grace`.
pub(crate) async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken, grace: Duration) {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                if let Ok(permit) = permits.clone().try_acquire_owned() {
                    start(stream, &router, &graceful, permit);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "Failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("Stopped before all requests were answered");
    }
}

fn start(stream: TcpStream, router: &Router, graceful: &GracefulShutdown, permit: tokio::sync::OwnedSemaphorePermit) {
    // Answers are small, and somebody waits for them.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, UNSENT);
    let service = TowerToHyperService::new(router.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Stall::new(stream, STALL)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        let _permit = permit;
        if let Err(error) = connection.await {
            tracing::debug!(%error, "A connection ended with an error");
        }
    });
}
