//! A server's place in its cluster.

use std::fmt;

/// A server's place in its cluster.
#[derive(Clone)]
pub struct Member {
    /// Its name, which no other member has.
    pub name: String,
    /// The port for the other members.
    pub port: u16,
    /// These ports of all members.
    pub routes: Vec<u16>,
    /// The password of the user `redial` and of the members, the same for all. Letters and digits.
    pub password: String,
}

/// Never shows the password.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("port", &self.port).finish_non_exhaustive()
    }
}
