//! Redial on real servers, with its dispatchers, workers and gateways in this process.
//! Tests whose subject are processes, killed ones among them, are in `tests/processes`.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

mod agent_loop;
mod api_fuzz;
mod attacks;
mod end_to_end;
mod failover;
mod http;
mod migrations;
mod mutations;
mod nats_permissions;
#[path = "../shared/new_task.rs"]
mod new_task;
#[path = "../shared/python.rs"]
mod python;
mod short_queue;
mod tasks;
mod webhooks;
