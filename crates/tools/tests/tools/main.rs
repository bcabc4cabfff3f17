//! Tools as workers run them: native functions, programs, HTTP requests, and the manifests that declare them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
mod http;
mod manifest;
mod native;
mod proxy;
