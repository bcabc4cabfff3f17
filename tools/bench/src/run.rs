//! One run: start the servers, measure, stop them, report.

use std::path::Path;

use serde::Serialize;

use crate::{
    before::Before,
    cli::RunArgs,
    output::println,
    plan::Plan,
    report::{self, Figure},
    samples::Samples,
    servers::Servers,
    sides,
};

/// The Postgres of the run, and what it was set to.
#[derive(Serialize)]
struct Server {
    version: String,
    shared_buffers: String,
    max_wal_size: String,
}

#[derive(Serialize)]
struct Report<'a> {
    plan: &'a Plan,
    postgres: Server,
    rows: Vec<Figure>,
    /// Every value of every round, in the units of [`crate::cases::Metric`].
    samples: &'a Samples,
}

pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<()> {
    let plan = Plan::new(args);
    let servers = Servers::start(args.shared_buffers.as_deref()).await?;
    let measured = measure(&plan, &servers, args.against.as_deref()).await;
    servers.stop().await?;
    let (samples, postgres) = measured?;
    let report = Report { plan: &plan, postgres, rows: report::figures(&plan, &samples), samples: &samples };
    Ok(println(&if args.json { serde_json::to_string(&report)? } else { text(&report) })?)
}

/// Returns what was measured, on which Postgres.
async fn measure(plan: &Plan, servers: &Servers, against: Option<&Path>) -> anyhow::Result<(Samples, Server)> {
    let database = servers.database().await?;
    let (version, shared_buffers, max_wal_size) = database.server().await?;
    let postgres = Server { version, shared_buffers, max_wal_size };
    let before = match against {
        Some(program) => Some(Before::prepare(servers, program).await?),
        None => None,
    };
    let samples = sides::run(plan, servers, &database, before.as_ref()).await;
    database.close().await;
    if let Some(before) = before {
        before.close().await;
    }
    Ok((samples?, postgres))
}

fn text(report: &Report<'_>) -> String {
    let Report { plan: Plan { rounds, calls, .. }, postgres, rows, samples } = report;
    let Server { version, shared_buffers, max_wal_size } = postgres;
    let parts = report::parts(samples).map(|table| format!("\n\n{table}")).unwrap_or_default();
    format!(
        "medians of {rounds} rounds of {calls} calls with 200 bytes of arguments; {version}, \
         shared_buffers {shared_buffers}, max_wal_size {max_wal_size}\n\n{}{parts}",
        report::render(rows)
    )
}
