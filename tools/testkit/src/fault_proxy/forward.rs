//! One connection through the proxy.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
};

use super::faults::{Faults, Side, Traffic};

/// Why a connection is no longer forwarded.
enum End {
    Over,
    Lost(Side),
}

/// Forwards a connection to a server until its end.
pub(super) async fn forward(
    mut client: TcpStream,
    server: SocketAddr,
    faults: watch::Receiver<Faults>,
    traffic: &watch::Sender<Traffic>,
) {
    let begin = *faults.borrow();
    let Ok(mut server) = TcpStream::connect(begin.target.unwrap_or(server)).await else { return };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let asked = AtomicU64::new(0);
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let there = Way { to: Side::Server, faults: faults.clone(), tears: begin.tears, asked: &asked, traffic };
        let back = Way { to: Side::Client, faults: faults.clone(), tears: begin.tears, asked: &asked, traffic };
        // Torn in one direction, it is over in both; closed in one, it may stay open in the other.
        let both = async {
            let (there, back) = (there.pump(from_client, to_server), back.pump(from_server, to_client));
            tokio::pin!(there, back);
            tokio::select! {
                torn = &mut there => if !torn { back.await; },
                torn = &mut back => if !torn { there.await; },
            }
        };
        tokio::select! {
            () = both => End::Over,
            end = broken(faults.clone(), begin) => end,
        }
    };
    match end {
        End::Over => {}
        End::Lost(Side::Client) => {
            drop(client);
            unheard(server, faults, begin.cuts).await;
        }
        End::Lost(Side::Server) => {
            drop(server);
            unheard(client, faults, begin.cuts).await;
        }
    }
}

/// Waits until a fault ends the connection.
async fn broken(mut faults: watch::Receiver<Faults>, begin: Faults) -> End {
    let differs = |faults: &Faults| {
        (faults.cuts, faults.lost_clients, faults.lost_servers) != (begin.cuts, begin.lost_clients, begin.lost_servers)
    };
    match faults.wait_for(differs).await {
        Ok(now) if now.cuts == begin.cuts && now.lost_clients != begin.lost_clients => End::Lost(Side::Client),
        Ok(now) if now.cuts == begin.cuts => End::Lost(Side::Server),
        // An error means that the proxy was dropped.
        _ => End::Over,
    }
}

/// Discards what the remaining side sends, until it closes the connection or a cut does.
async fn unheard(mut stream: TcpStream, mut faults: watch::Receiver<Faults>, cuts: u64) {
    let mut buffer = vec![0; 16 * 1024];
    let talk = async { while let Ok(1..) = stream.read(&mut buffer).await {} };
    tokio::select! {
        () = talk => {}
        _ = faults.wait_for(|faults| faults.cuts != cuts) => {}
    }
}

struct Way<'a> {
    to: Side,
    faults: watch::Receiver<Faults>,
    /// How many tears there were when the connection began.
    tears: u64,
    /// The last look after which the client asked something.
    asked: &'a AtomicU64,
    traffic: &'a watch::Sender<Traffic>,
}

impl Way<'_> {
    /// Forwards until the end, which it passes on. True if it tore the data.
    async fn pump(mut self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            self.note();
            let side = self.to;
            let open = self.faults.wait_for(|faults| !is_deaf(faults, side)).await.map(|faults| faults.tears);
            let Ok(tears) = open else { return true };
            if tears != self.tears {
                let _gone_already = to.write_all(&buffer[..read / 2]).await;
                return true;
            }
            if to.write_all(&buffer[..read]).await.is_err() {
                return false;
            }
        }
        let _closed_already = to.shutdown().await;
        false
    }

    /// Records that data came from this side.
    fn note(&self) {
        let asked = self.asked.load(Ordering::Relaxed);
        match self.to {
            Side::Server => self.asked.store(self.faults.borrow().looks, Ordering::Relaxed),
            Side::Client if asked > self.traffic.borrow().answered => {
                self.traffic.send_modify(|traffic| traffic.answered = traffic.answered.max(asked));
            }
            Side::Client => {}
        }
    }
}

fn is_deaf(faults: &Faults, side: Side) -> bool {
    match side {
        Side::Client => faults.to_client,
        Side::Server => faults.to_server,
    }
}
