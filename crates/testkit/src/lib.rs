//! Real servers, scripted outside parties and faults, for tests. Only ever a dev-dependency.
//!
//! Everything here panics with a clear message when it cannot do what a test asked for: a test cannot go on then.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failure here is a failure of the test that asked")]
#![expect(clippy::missing_panics_doc, reason = "see above")]

mod fault_proxy;
mod home;
mod process;
mod scripted_http;
mod servers;

pub use fault_proxy::FaultProxy;
pub use process::Process;
pub use scripted_http::{Reply, Request, ScriptedHttp};
pub use servers::Servers;
