//! A TCP proxy that breaks connections in the ways a network does.

mod faults;
mod forward;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};

pub use faults::Side;
use faults::{Faults, Traffic};

/// How long something may take that a test waits for.
const PATIENCE: Duration = Duration::from_mins(2);

/// A proxy between a client and its servers, each of which has an address of its own here. Dropping it closes everything.
#[derive(Debug)]
pub struct FaultProxy {
    addresses: Vec<SocketAddr>,
    faults: watch::Sender<Faults>,
    traffic: Arc<watch::Sender<Traffic>>,
    accepting: Vec<JoinHandle<()>>,
}

impl FaultProxy {
    async fn start_for(servers: &[SocketAddr]) -> Self {
        let (faults, seen) = watch::channel(Faults::default());
        let traffic = Arc::new(watch::Sender::new(Traffic::default()));
        let mut proxy = Self { addresses: Vec::new(), faults, traffic, accepting: Vec::new() };
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            proxy.addresses.push(listener.local_addr().unwrap());
            let accepting = accept(listener, *server, seen.clone(), Arc::clone(&proxy.traffic));
            proxy.accepting.push(tokio::spawn(accepting));
        }
        proxy
    }

    /// Listens on free ports and forwards to the hosts and ports of a URL, or of several with commas; also returns that URL
    /// through the proxy.
    pub async fn before(url: &str) -> (Self, String) {
        let hosts: Vec<&str> = url.split(',').map(host_and_port).collect();
        let servers: Vec<SocketAddr> = hosts.iter().map(|host| host.parse().expect("an address and a port")).collect();
        let proxy = Self::start_for(&servers).await;
        let through = hosts
            .iter()
            .zip(&proxy.addresses)
            .fold(url.to_owned(), |through, (host, address)| through.replacen(host, &address.to_string(), 1));
        (proxy, through)
    }

    /// Closes all open connections. New ones are accepted.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.cuts += 1);
    }

    /// Closes each open connection in the middle of the next piece of data: half of it arrives.
    pub fn truncate(&self) {
        self.faults.send_modify(|faults| faults.tears += 1);
    }

    /// Holds everything back while on: nothing is forwarded in either direction and no connection is closed; afterwards
    /// everything that was held back is forwarded.
    pub fn black_hole(&self, on: bool) {
        self.faults.send_modify(|faults| (faults.to_client, faults.to_server) = (on, on));
    }

    /// Holds back one direction: nothing reaches this side, and what it sends is forwarded.
    pub fn deafen(&self, side: Side, on: bool) {
        self.faults.send_modify(|faults| match side {
            Side::Client => faults.to_client = on,
            Side::Server => faults.to_server = on,
        });
    }

    /// Makes every open connection half-open: this side's socket is closed, the other's is not. What the other side sends is
    /// discarded until it closes the connection or [`cut`](Self::cut) does. New connections are whole.
    pub fn lose(&self, side: Side) {
        self.faults.send_modify(|faults| match side {
            Side::Client => faults.lost_clients += 1,
            Side::Server => faults.lost_servers += 1,
        });
    }

    /// Sets where new connections go to.
    pub fn target(&self, target: SocketAddr) {
        self.faults.send_modify(|faults| faults.target = Some(target));
    }

    /// Counts the connections that are open now.
    pub fn open(&self) -> usize {
        self.traffic.borrow().open
    }

    /// Waits until a server has answered something that a client sent after this was called.
    pub async fn answers(&self) {
        self.faults.send_modify(|faults| faults.looks += 1);
        let look = self.faults.borrow().looks;
        let mut traffic = self.traffic.subscribe();
        let answered = timeout(PATIENCE, traffic.wait_for(|traffic| traffic.answered >= look)).await.is_ok();
        assert!(answered, "no server has answered anything that a client sent within {PATIENCE:?}");
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.iter().for_each(JoinHandle::abort);
        self.cut();
    }
}

/// Returns host and port of a URL, or of one of its hosts.
fn host_and_port(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    faults: watch::Receiver<Faults>,
    traffic: Arc<watch::Sender<Traffic>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (faults, traffic) = (faults.clone(), Arc::clone(&traffic));
        traffic.send_modify(|traffic| traffic.open += 1);
        tokio::spawn(async move {
            forward::forward(client, server, faults, &traffic).await;
            traffic.send_modify(|traffic| traffic.open -= 1);
        });
    }
}
