//! A whole Redial on real servers, for the tests from end to end: the testkit, and above it what needs the services.
//!
//! [`Stack`] has dispatchers, workers and gateways in the test's process, on a database of their own; it fails a test that leaves
//! something behind.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failure here is a failure of the test that asked")]
#![expect(clippy::missing_panics_doc, reason = "see above")]

mod completions;
mod stack;

pub use completions::{calls, says};
pub use redial_testkit::*;
pub use stack::{Stack, TestGateway, WEBHOOK_KEY, file, new_token, token};
