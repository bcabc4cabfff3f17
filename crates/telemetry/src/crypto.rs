//! The one TLS provider of the process.

/// Makes *ring* the TLS provider of this process. Calling it again does nothing. Needed before the first HTTP client
/// is built: reqwest panics without a provider. [`crate::init`] calls it.
pub fn install_crypto() {
    // An error means that a provider is installed already, which is enough.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
