//! Whom a standby follows.

use std::fmt;

/// The server that a standby follows.
#[derive(Clone)]
pub struct Upstream {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The password of its user `redial`, which is that of the standby, too.
    pub password: String,
}

/// Never shows the password.
impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("port", &self.port).finish_non_exhaustive()
    }
}
