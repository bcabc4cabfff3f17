//! What is exported, and what is not.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

mod collector;
mod exporting;
mod process;
mod quiet;

use redial_testkit::{Reply, Request, ScriptedHttp};
