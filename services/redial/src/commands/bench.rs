//! `redial bench`: Redial against the floor, on the same servers, in the same run.
//!
//! The floor is the bare work that any system of this shape must do for a call: one insert, one message to a worker,
//! one update to running, one message back, one update to done with the result inserted; in batches, pipelined, with
//! the same durability. Rounds alternate between the two, so that a noisy machine harms both alike, and ratios are
//! what counts.
//!
//! | file | does |
//! | --- | --- |
//! | `plan.rs` | the cases, and how much of each |
//! | `servers.rs`, `fleet.rs` | starts private servers; dispatchers and workers as processes of their own |
//! | `rounds.rs` | every case once a round |
//! | `load.rs`, `tasks.rs`, `sleeper.rs` | calls and tasks as a client submits them; slow calls |
//! | `floor.rs` | the floor |
//! | `meter.rs` | processor time, memory, bytes written |
//! | `samples.rs`, `report.rs` | medians, ratios, targets; the table |

mod fleet;
mod floor;
mod load;
mod meter;
mod plan;
mod report;
mod rounds;
mod samples;
mod servers;
pub(crate) mod sleeper;
mod tasks;

use std::{process::ExitCode, time::Duration};

use serde::Serialize;

pub(crate) use self::plan::Case;
use self::{plan::Plan, report::Row, samples::Samples, servers::Servers};
use crate::{cli::BenchArgs, output, settings::Settings};

#[derive(Serialize)]
struct Report<'a> {
    plan: &'a Plan,
    postgres: String,
    rows: Vec<Row>,
    /// Every value of every round, in the units of [`samples::Metric`].
    samples: &'a Samples,
}

pub(crate) async fn run(settings: &Settings, args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::new(args);
    output::note(format!("this takes about {} on two shared cores", minutes(plan.estimate())));
    let servers = Servers::start().await?;
    let measured = rounds::run(&plan, &servers).await;
    servers.stop().await?;
    let (samples, postgres) = measured?;
    let rows = report::rows(&plan, &samples);
    if settings.json() {
        output::json(&Report { plan: &plan, postgres, rows, samples: &samples })?;
    } else {
        output::line(format!(
            "medians of {} rounds of {} calls with 200 bytes of arguments\n",
            plan.rounds, plan.calls
        ));
        output::line(report::render(&rows));
    }
    Ok(ExitCode::SUCCESS)
}

fn minutes(seconds: f64) -> String {
    let minutes = Duration::from_secs_f64(seconds).as_secs().div_ceil(60);
    if minutes == 1 { "a minute".to_owned() } else { format!("{minutes} minutes") }
}
