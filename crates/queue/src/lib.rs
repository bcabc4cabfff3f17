//! Redial's streams and subjects on NATS; the only crate that speaks NATS.
