//! What the repository itself must be: walls between crates, documents that name what exists, deployment files that fit.
//! Nothing here needs a server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

mod deploy_files;
mod documents;
mod generated;
#[path = "../shared/python.rs"]
mod python;
mod size;
mod types;
mod walls;
