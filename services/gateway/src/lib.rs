//! The gateway: Redial over HTTP. Stateless; any number of them run side by side.
//!
//! What changes something is asked of the dispatchers over NATS, as the tenant, user and role of the request's token. What is
//! read comes from Postgres, through the store's `TenantStore`. Each address is declared once (`endpoint`): for the router,
//! for the roles that it needs, and for the OpenAPI document. `routes` has a file for each resource.

mod access_log;
mod auth;
mod bounds;
mod config;
mod endpoint;
mod error;
mod events;
mod extract;
mod figures;
mod gateway;
mod hub;
mod idempotency;
mod identity;
mod last_look;
mod layers;
mod limits;
mod openai;
mod openai_error;
mod openapi;
mod pace;
mod page;
mod prefer;
mod problem;
mod refusals;
mod rights;
mod router;
mod routes;
mod server;
mod sessions;
mod stall;
mod stats;
mod streams;
mod watch;

use std::{net::SocketAddr, sync::Arc};

use redial_loops::Loops;
use redial_queue::Queue;
use redial_store::{Purpose, Store, StoreConfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
pub use crate::{config::GatewayConfig, error::GatewayError, problem::status};

/// Runs a gateway until `shutdown`, then lets requests finish. `ready` is called with the address once it answers.
///
/// Fails at the start: a wrong setting, an address that is taken, tables that are not migrated. Later outages of Postgres and
/// NATS are waited out; requests get the status 503 meanwhile.
pub async fn run(
    config: GatewayConfig,
    shutdown: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), GatewayError> {
    config.check()?;
    let connections = server::connections(raise_file_limit());
    let listen = |error| GatewayError::Listen { address: config.listen, error };
    let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let connecting = Box::pin(connect(config, shutdown.clone()));
    let gateway = tokio::select! {
        gateway = connecting => Arc::new(gateway?),
        () = shutdown.cancelled() => return Ok(()),
    };
    start_loops(&gateway).await?;
    tracing::info!(%address, console = format!("http://{address}/console"), "Gateway started");
    ready(address);
    let most = (connections, gateway.config.drain_grace);
    let serving = server::serve(listener, router::router(&gateway), shutdown, most);
    let stopped = tokio::select! {
        () = serving => Ok(()),
        panic = gateway.loops.panicked() => Err(panic.into()),
    };
    gateway.shutdown.cancel();
    gateway.loops.close();
    gateway.loops.wait().await;
    gateway.store.close().await;
    stopped
}

/// Returns the OpenAPI document of this version, as JSON.
pub fn openapi() -> String {
    let document = openapi::document(&routes::all());
    format!("{document:#}\n")
}

async fn connect(config: GatewayConfig, shutdown: CancellationToken) -> Result<Gateway, GatewayError> {
    let rights = rights::Rights::load(config.access.clone()).await.map_err(GatewayError::File)?;
    let store =
        StoreConfig { url: config.database_url.clone(), connections: config.connections, purpose: Purpose::Audit };
    let limits = Arc::new(limits::Limits::new(&config));
    Ok(Gateway {
        queue: Queue::connect(&config.queue).await?,
        store: Store::connect(&store).await?,
        hub: hub::Hub::default(),
        tokens: auth::Tokens::new(&config, limits.clone()),
        rights,
        stats: stats::Stats::default(),
        refusals: refusals::Refusals::default(),
        figures: figures::Figures::default(),
        streams: streams::Streams::default(),
        page_key: tokio::sync::OnceCell::new(),
        last_look: last_look::LastLook::default(),
        limits,
        loops: Loops::default(),
        shutdown,
        config,
    })
}

async fn start_loops(gateway: &gateway::Shared) -> Result<(), GatewayError> {
    let (loops, shutdown) = (&gateway.loops, &gateway.shutdown);
    for subject in watch::EVENTS {
        let events = gateway.queue.subscribe(subject).await?;
        loops.spawn("hear events", watch::hear(gateway.clone(), events, shutdown.clone()));
    }
    let following = gateway.clone();
    loops.spawn("read the access file again", async move { following.rights.follow(&following.shutdown).await });
    loops.spawn("look at what is waited for", watch::look(gateway.clone(), shutdown.clone()));
    loops.spawn("warn of refused tokens", watch::warn_of_refused_tokens(gateway.clone(), shutdown.clone()));
    loops.spawn("write used tokens", watch::write_used_tokens(gateway.clone(), shutdown.clone()));
    Ok(())
}

/// Raises the limit of open files, of which each stream is one; returns how many may be open then. What the system
/// allows as the most is meant for such programs; its default is for `select(2)`.
fn raise_file_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let files = |limit: Option<u64>| limit.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    if current == maximum {
        return files(current);
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "Failed to raise the limit of open files; it limits the number of streams");
        return files(current);
    }
    files(maximum)
}
