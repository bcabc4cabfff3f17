//! What may be shown of a failed connection.

use std::{error::Error, io};

/// Returns the kind of the I/O error that caused an HTTP client's error. Only the kind may be shown: the error itself
/// may contain host names.
pub fn io_kind(error: &dyn Error) -> Option<io::ErrorKind> {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.find_map(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        kind.filter(|kind| *kind != io::ErrorKind::Other)
    })
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// An error of a library, with its cause.
    #[derive(Debug)]
    struct Caused(io::Error);

    impl fmt::Display for Caused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("error sending request")
        }
    }

    impl Error for Caused {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn the_first_cause_with_a_known_kind_counts() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "db-7.internal refused");
        let unknown = io::Error::other(Caused(refused));
        assert_eq!(io_kind(&Caused(unknown)), Some(io::ErrorKind::ConnectionRefused));
        assert_eq!(io_kind(&Caused(io::Error::other("lost"))), None);
    }
}
