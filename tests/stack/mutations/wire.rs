//! A proxy that reads what goes through it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Counts how often a mutation was applied. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hits(Arc<AtomicUsize>);

impl Hits {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Accepts until it is dropped.
#[derive(Debug)]
pub(crate) struct Wire(JoinHandle<()>);

impl Wire {
    /// Listens before the server of a URL, and gives each connection to `forward`. Returns the URL through itself.
    pub(crate) async fn before<F>(
        url: &str,
        forward: impl Fn(TcpStream, TcpStream) -> F + Send + 'static,
    ) -> (Self, String)
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let (_, authority) = url.split_once("://").unwrap();
        let host = authority.split('/').next().and_then(|part| part.rsplit('@').next()).unwrap();
        let server: SocketAddr = host.parse().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let through = url.replacen(host, &listener.local_addr().unwrap().to_string(), 1);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
                // Its end is the end of the connection, and both sides see that.
                tokio::spawn(forward(client, server));
            }
        });
        (Self(accepting), through)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.0.abort();
    }
}
