//! Redial as its users run it: processes of the built program, killed, paused and stopped, and clients in other languages.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

mod audit_commands;
mod console;
mod database_roles;
mod memory;
#[path = "../shared/new_task.rs"]
mod new_task;
mod openai;
mod outages;
mod pooler;
mod program;
#[path = "../shared/python.rs"]
mod python;
mod python_client;
mod python_worker;
