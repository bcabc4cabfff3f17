//! The part of the NATS protocol that is needed to ask whether JetStream answers; only the queue crate may use the client
//! library.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// Enough for loopback; a server that needs longer is asked again.
const PATIENCE: Duration = Duration::from_millis(500);

/// True if JetStream answers this user, false if the server refuses the user or the request.
pub(super) fn answers(port: u16, user: &str, password: &str) -> io::Result<bool> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"user\":\"{user}\",\"pass\":\"{password}\"}}\r\n\
         SUB answer 1\r\nPUB $JS.API.INFO answer 0\r\n\r\nPING\r\n"
    )?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 || line.starts_with("-ERR") {
            return Ok(false);
        }
        if let Some(bytes) = line.strip_prefix("MSG ").and_then(|rest| rest.split_whitespace().next_back()) {
            let mut payload = vec![0; bytes.parse().map_err(io::Error::other)?];
            lines.read_exact(&mut payload)?;
            return Ok(!String::from_utf8_lossy(&payload).contains("\"error\""));
        }
    }
}
