//! `redial stats`: figures of the calls that ended, by tool, class, model, worker or hour.

mod csv;
mod table;

use std::process::ExitCode;

use redial_api::Figures;
use redial_proto::{ApiError, Code};
use redial_store::stats::{By, Stats, StatsQuestion, kept};
use redial_views::{figures, sort_groups};

use crate::{cli::StatsArgs, connect, output, settings::Settings};

pub(crate) async fn run(settings: &Settings, args: StatsArgs) -> anyhow::Result<ExitCode> {
    let StatsArgs { by, since, until, tool, model, csv } = args;
    let tenant = settings.only_tenant()?;
    let tool = model.map(|model| redial_proto::turn::tool_name(&model)).or(tool);
    if until.is_some_and(|until| until <= since) {
        return Err(ApiError::new(Code::InvalidValue, "--until is not later than --since").into());
    }
    let question = StatsQuestion { by: by.into(), and: None, since, until, tool, tenant };
    let mut stats = connect::store(settings).await?.stats(&question).await?;
    sort_groups(&mut stats.groups);
    let figures: Vec<Figures> =
        stats.groups.iter().map(|(group, sums)| figures(question.by, None, group, sums)).collect();
    if settings.json() {
        figures.iter().try_for_each(output::json)?;
    } else if csv {
        output::line(csv::render(question.by, &figures))?;
    } else if !figures.is_empty() {
        output::line(table::render(question.by, &stats))?;
    }
    output::note(about(&stats, question.by));
    Ok(ExitCode::SUCCESS)
}

/// Says what the figures are about, as far as the table does not.
fn about(stats: &Stats, by: By) -> String {
    let since = stats.since.format("%Y-%m-%d %H:%MZ");
    let until = stats.until.format("%Y-%m-%d %H:%M:%SZ");
    if stats.groups.is_empty() && stats.is_complete {
        return format!("no call that matches ended from {since} to {until}");
    }
    let mut about = format!("calls that ended from {since} to {until}\np50 and p95 are within 10 %");
    if chrono::Utc::now() - stats.since > kept(by) {
        about += &format!("\nwhat ended over {} days ago is not counted", kept(by).num_days());
    }
    if !stats.is_complete {
        about += "\nlater calls are not counted yet: ask again in a few minutes.\n\
                  If it stays so, see the dispatchers' logs";
    }
    about
}

impl From<crate::cli::StatsBy> for By {
    fn from(by: crate::cli::StatsBy) -> Self {
        use crate::cli::StatsBy;
        match by {
            StatsBy::Tool => Self::Tool,
            StatsBy::Class => Self::Class,
            StatsBy::Model => Self::Model,
            StatsBy::Worker => Self::Worker,
            StatsBy::Hour => Self::Hour,
        }
    }
}
