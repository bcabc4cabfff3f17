//! Accepts connections.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use axum::{
    Router,
    http::{Uri, uri::PathAndQuery},
};
use hyper::{Request, body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use redial_shares::{Share, Shares};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::{pace::Pace, stall::Stall};

/// Who has not sent the head of a request by then is cut off.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of the head of a request, which [`crate::layers`] checks, and of what is read ahead of its body.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;
/// Who takes nothing of an answer for so long is cut off.
const STALL: Duration = Duration::from_mins(1);
/// Bytes of an answer that the kernel holds for a connection, about; it takes twice as many with its own. Left alone it would
/// hold 4 MB, as much as most answers have: nobody would see that nothing is read, and nothing would count.
const UNSENT: usize = 128 * 1024;
/// Connections at a time, which the addresses that they come from share.
const CONNECTIONS: usize = 100_000;
/// Files that are open besides connections, about: to Postgres and NATS, and of the program itself.
const OTHER_FILES: usize = 256;
/// After an error that another connection would meet, too: no file descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns the connections of a gateway that may have so many files open.
pub(crate) fn connections(files: usize) -> Shares {
    Shares::new(CONNECTIONS.min(files.saturating_sub(OTHER_FILES)).max(OTHER_FILES))
}

/// Serves until the shutdown; then lets requests finish for `grace`.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    (connections, grace): (Shares, Duration),
) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let peer = peer.ip().to_canonical();
                if let Some(share) = connections.try_take(&network(peer).to_string(), 1) {
                    start((stream, peer), &router, &graceful, share);
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

/// Returns whose connections count together: an IPv4 address's, or a /64's, of which a host may have all addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn start((stream, peer): (TcpStream, IpAddr), router: &Router, graceful: &GracefulShutdown, share: Share) {
    // Answers are small, and somebody waits for them.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, UNSENT);
    let pace = Pace::default();
    let of_connection = pace.clone();
    let service = router.clone().map_request(move |request| arrived(request, peer, of_connection.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Stall::new(stream, STALL, pace)), TowerToHyperService::new(service));
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        let _share = share;
        if let Err(error) = connection.await {
            tracing::debug!(%error, "A connection ended with an error");
        }
    });
}

/// Prepares a request for the router: says who sent it and on which connection, cuts slashes at its address's end.
fn arrived(mut request: Request<Incoming>, peer: IpAddr, pace: Pace) -> Request<Incoming> {
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(pace);
    if let Some(uri) = without_slash(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

/// Returns the address without slashes at its end; `None` if it has none there.
fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() || trimmed.len() == path.len() {
        return None;
    }
    let target = uri.query().map_or_else(|| trimmed.to_owned(), |query| format!("{trimmed}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shared_by_addresses() {
        let from = |connections: &Shares, address: &str| {
            std::iter::from_fn(|| connections.try_take(address, 1)).collect::<Vec<_>>()
        };
        let few = connections(OTHER_FILES + 1_000);
        let (flood, other) = (from(&few, "192.0.2.1"), from(&few, "192.0.2.2"));
        assert_eq!((flood.len(), other.len()), (500, 250));
        assert_eq!(from(&connections(usize::MAX), "192.0.2.1").len(), CONNECTIONS / 2);
        for (address, counted) in [("192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")] {
            assert_eq!(network(address.parse().unwrap()).to_string(), counted);
        }
    }

    #[test]
    fn a_slash_at_the_end_of_an_address_means_nothing() {
        for (sent, meant) in [
            ("/v1/calls/", Some("/v1/calls")),
            ("/v1/calls//?a=/b/", Some("/v1/calls?a=/b/")),
            ("http://host:8700/v1/calls/?", Some("http://host:8700/v1/calls?")),
            ("//evil.example/", Some("//evil.example")),
            ("/v1/calls?a=/", None),
            ("/", None),
            ("//", None),
        ] {
            let found = without_slash(&sent.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), meant, "{sent}");
        }
    }
}
