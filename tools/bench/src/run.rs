//! One run: start the servers, measure, stop them, report.

use std::{io::Write as _, time::Duration};

use serde::Serialize;

use crate::{
    cli::RunArgs,
    history,
    output::note,
    plan::Plan,
    report::{self, Row},
    rounds,
    samples::Samples,
    servers::Servers,
};

#[derive(Serialize)]
struct Report<'a> {
    plan: &'a Plan,
    postgres: String,
    rows: Vec<Row>,
    /// Every value of every round, in the units of [`crate::samples::Metric`].
    samples: &'a Samples,
}

/// See the module.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<()> {
    let plan = Plan::new(args);
    note(&format!("this takes about {} on two shared cores", minutes(plan.estimate())));
    let servers = Servers::start().await?;
    let measured = rounds::run(&plan, &servers).await;
    servers.stop().await?;
    let (samples, postgres) = measured?;
    let report = Report { plan: &plan, postgres, rows: report::rows(&plan, &samples), samples: &samples };
    let text = if args.json { serde_json::to_string(&report)? } else { text(&report)? };
    writeln!(std::io::stdout(), "{text}")?;
    if args.record {
        let figures = report.rows.into_iter().map(|row| row.figure).collect();
        history::record(&plan, &report.postgres, figures)?;
    }
    Ok(())
}

fn text(report: &Report<'_>) -> anyhow::Result<String> {
    let Report { plan, rows, .. } = report;
    let figures: Vec<_> = rows.iter().map(|row| &row.figure).collect();
    let changes = history::compare(plan, &figures)?.map(|table| format!("\n\n{table}")).unwrap_or_default();
    Ok(format!(
        "medians of {} rounds of {} calls with 200 bytes of arguments\n\n{}{changes}",
        plan.rounds,
        plan.calls,
        report::render(rows)
    ))
}

fn minutes(seconds: f64) -> String {
    let minutes = Duration::from_secs_f64(seconds).as_secs().div_ceil(60);
    if minutes == 1 { "a minute".to_owned() } else { format!("{minutes} minutes") }
}
