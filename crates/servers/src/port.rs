//! Ports of 127.0.0.1.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, TcpListener},
};

use parking_lot::Mutex;
use uuid::Uuid;

/// Below the range from which Linux takes ports for outgoing connections (32768 and up by default): otherwise a client
/// that reconnects while its server is down could be given, and so occupy, the port of that server.
const FIRST: u16 = 28_100;
const COUNT: u16 = 1_900;

/// What this process was given before: a server that is down for a moment comes back to its port.
static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// True if a server could listen on this port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Returns a free port that it did not return before, while there is one; `None` if none is free. Another program may
/// take it before it is used.
pub fn any_free() -> Option<u16> {
    let mut given = GIVEN.lock();
    let given = given.get_or_insert_default();
    let [low, high, ..] = Uuid::new_v4().into_bytes();
    let start = u16::from_le_bytes([low, high]) % COUNT;
    let free = || (0..COUNT).map(|step| FIRST + (start + step) % COUNT).filter(|port| is_free(*port));
    let port = free().find(|port| !given.contains(port)).or_else(|| free().next()).or_else(chosen_by_the_system)?;
    given.insert(port);
    Some(port)
}

fn chosen_by_the_system() -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    listener.local_addr().ok().map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_ports_differ_and_lie_outside_the_outgoing_range() {
        let ports: HashSet<u16> = (0..50).map(|_| any_free().unwrap()).collect();
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{ports:?}");
        assert_eq!(ports.len(), 50, "none twice");
    }
}
