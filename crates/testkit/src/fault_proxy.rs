//! A TCP proxy that breaks connections in the ways a network does.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Stands between a client and a server. Dropping it closes everything.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    open: Arc<watch::Sender<usize>>,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug)]
struct Faults {
    target: SocketAddr,
    black_hole: bool,
    delay: Duration,
    /// Counts the cuts: a connection ends when this is no longer what it was at its beginning.
    cuts: u64,
}

impl FaultProxy {
    /// Listens on a free port and forwards to `target`.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (faults, seen) = watch::channel(Faults { target, black_hole: false, delay: Duration::ZERO, cuts: 0 });
        let open = Arc::new(watch::Sender::new(0));
        let accepting = tokio::spawn(accept(listener, seen, Arc::clone(&open)));
        Self { address, faults, open, accepting }
    }

    /// Listens on a free port and forwards to the host and port of a URL; also returns that URL through the proxy.
    pub async fn before(url: &str) -> (Self, String) {
        let (_, authority) = url.split_once("://").expect("a URL has a scheme");
        let host = authority.split('/').next().and_then(|part| part.rsplit('@').next()).unwrap();
        let proxy = Self::start(host.parse().expect("an address and a port")).await;
        let through = url.replacen(host, &proxy.address.to_string(), 1);
        (proxy, through)
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all open connections. New ones are accepted.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.cuts += 1);
    }

    /// While on, nothing is forwarded in either direction, and nobody is told; afterwards all that was held back is.
    pub fn black_hole(&self, on: bool) {
        self.faults.send_modify(|faults| faults.black_hole = on);
    }

    /// Holds each piece of data back for this long.
    pub fn delay(&self, delay: Duration) {
        self.faults.send_modify(|faults| faults.delay = delay);
    }

    /// Where new connections go to.
    pub fn target(&self, target: SocketAddr) {
        self.faults.send_modify(|faults| faults.target = target);
    }

    /// Waits until so many connections are open.
    pub async fn connections(&self, count: usize) {
        self.open.subscribe().wait_for(|open| *open == count).await.unwrap();
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, faults: watch::Receiver<Faults>, open: Arc<watch::Sender<usize>>) {
    while let Ok((client, _)) = listener.accept().await {
        let (faults, open) = (faults.clone(), Arc::clone(&open));
        open.send_modify(|count| *count += 1);
        tokio::spawn(async move {
            forward(client, faults).await;
            open.send_modify(|count| *count -= 1);
        });
    }
}

async fn forward(client: TcpStream, faults: watch::Receiver<Faults>) {
    let Faults { target, cuts, .. } = *faults.borrow();
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let both = async {
        tokio::join!(pump(from_client, to_server, faults.clone()), pump(from_server, to_client, faults.clone()));
    };
    let mut watched = faults.clone();
    tokio::select! {
        () = both => {}
        // An error means that the proxy was dropped.
        _ = watched.wait_for(|faults| faults.cuts != cuts) => {}
    }
}

/// One direction, until its end, which it passes on.
async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut faults: watch::Receiver<Faults>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let delay = faults.borrow().delay;
        tokio::time::sleep(delay).await;
        if faults.wait_for(|faults| !faults.black_hole).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    let _closed_already = to.shutdown().await;
}
