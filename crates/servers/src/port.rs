//! Ports of 127.0.0.1.

use std::net::{Ipv4Addr, TcpListener};

use uuid::Uuid;

/// Below the range from which Linux takes ports for outgoing connections (32768 and up by default): otherwise a client
/// that reconnects while its server is down could be given, and so occupy, the port of that server.
const FIRST: u16 = 28_100;
const COUNT: u16 = 1_900;

/// Whether a server could listen on this port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// A free port; `None` if there is none. Another program may take it before it is used.
pub(crate) fn any_free() -> Option<u16> {
    let [low, high, ..] = Uuid::new_v4().into_bytes();
    let start = u16::from_le_bytes([low, high]) % COUNT;
    (0..COUNT).map(|step| FIRST + (start + step) % COUNT).find(|port| is_free(*port)).or_else(chosen_by_the_system)
}

fn chosen_by_the_system() -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    listener.local_addr().ok().map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_free(port));
        drop(listener);
        assert!(is_free(port));
    }

    #[test]
    fn chosen_ports_lie_outside_the_outgoing_range() {
        for _ in 0..50 {
            let port = any_free().unwrap();
            assert!((FIRST..FIRST + COUNT).contains(&port), "{port}");
        }
    }
}
