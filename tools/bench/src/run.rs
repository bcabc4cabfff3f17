//! One run: start the servers, measure, stop them, report.

use std::{io::Write as _, path::Path, time::Duration};

use serde::Serialize;

use crate::{
    before::Before,
    cli::RunArgs,
    history,
    output::note,
    plan::Plan,
    report::{self, Row},
    rounds,
    samples::Samples,
    servers::Servers,
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
    rows: Vec<Row>,
    /// Every value of every round, in the units of [`crate::samples::Metric`].
    samples: &'a Samples,
}

/// See the module.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<()> {
    let plan = Plan::new(args);
    note(&format!("this takes about {} on two shared cores", minutes(plan.estimate())));
    let servers = Servers::start(args.servers.settings()).await?;
    let measured = measure(&plan, &servers, args.against.as_deref()).await;
    servers.stop().await?;
    let (samples, postgres) = measured?;
    let report = Report { plan: &plan, postgres, rows: report::rows(&plan, &samples), samples: &samples };
    let text = if args.json { serde_json::to_string(&report)? } else { text(&report)? };
    writeln!(std::io::stdout(), "{text}")?;
    if args.record {
        let figures = report.rows.into_iter().map(|row| row.figure).collect();
        history::record(&plan, &report.postgres.version, figures)?;
    }
    Ok(())
}

/// Returns what was measured, on which Postgres.
async fn measure(plan: &Plan, servers: &Servers, against: Option<&Path>) -> anyhow::Result<(Samples, Server)> {
    let database = servers.database().await?;
    let postgres = Server {
        version: database.version().await?,
        shared_buffers: database.setting("shared_buffers").await?,
        max_wal_size: database.setting("max_wal_size").await?,
    };
    database.close().await;
    let before = match against {
        Some(program) => Some(Before::prepare(servers, program).await?),
        None => None,
    };
    let samples = rounds::run(plan, servers, before.as_ref()).await;
    if let Some(before) = before {
        before.close().await;
    }
    Ok((samples?, postgres))
}

fn text(report: &Report<'_>) -> anyhow::Result<String> {
    let Report { plan, postgres, rows, samples } = report;
    let figures: Vec<_> = rows.iter().map(|row| &row.figure).collect();
    let changes = history::compare(plan, &figures)?.map(|table| format!("\n\n{table}")).unwrap_or_default();
    let parts = report::parts(samples).map(|table| format!("\n\n{table}")).unwrap_or_default();
    Ok(format!(
        "medians of {} rounds of {} calls with 200 bytes of arguments; {}, shared_buffers {}, max_wal_size {}\n\n{}{parts}{changes}",
        plan.rounds,
        plan.calls,
        postgres.version,
        postgres.shared_buffers,
        postgres.max_wal_size,
        report::render(rows)
    ))
}

fn minutes(seconds: f64) -> String {
    let minutes = Duration::from_secs_f64(seconds).as_secs().div_ceil(60);
    if minutes == 1 { "a minute".to_owned() } else { format!("{minutes} minutes") }
}
