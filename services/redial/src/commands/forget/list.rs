//! Lists erasures.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::ForgetCounts;
use redial_store::Tombstone;
use serde::Serialize;

use crate::{
    cli::ForgetArgs,
    connect, output,
    settings::Settings,
    table::{Cell, Column, Paper, Table},
};

/// Erasures that are listed unless `--limit` says otherwise.
const LIMIT: u32 = 1_000;
const NARROW: [Column; 6] = [
    Column::whole("erased"),
    Column::shortened("tenant", 8),
    Column::shortened("conversation", 8),
    Column::shortened("by", 6),
    Column::whole("tasks"),
    Column::whole("calls"),
];

const WIDE: [Column; 19] = [
    Column::whole("erasure"),
    Column::whole("begun"),
    Column::whole("erased"),
    Column::whole("tenant"),
    Column::whole("conversation"),
    Column::whole("by"),
    Column::whole("submitted from"),
    Column::whole("submitted to"),
    Column::whole("tasks"),
    Column::whole("messages"),
    Column::whole("steps"),
    Column::whole("calls"),
    Column::whole("model turns"),
    Column::whole("attempts"),
    Column::whole("late reports"),
    Column::whole("dead letters"),
    Column::whole("keys"),
    Column::whole("statistics"),
    Column::whole("tokens"),
];

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    erasure: uuid::Uuid,
    tenant: &'a str,
    conversation: Option<&'a str>,
    user: &'a str,
    begun_at: DateTime<Utc>,
    erased_at: Option<DateTime<Utc>>,
    submitted_from: Option<DateTime<Utc>>,
    submitted_to: Option<DateTime<Utc>>,
    counts: &'a ForgetCounts,
}

pub(super) async fn run(settings: &Settings, args: &ForgetArgs) -> anyhow::Result<ExitCode> {
    let (tenant, limit, wide) = (settings.only_tenant()?, args.limit.unwrap_or(LIMIT), args.wide);
    let store = connect::store(settings).await?;
    let mut erasures = store.tombstones(tenant.as_deref(), limit.saturating_add(1)).await?;
    let more = erasures.len() > limit as usize;
    erasures.truncate(limit as usize);
    if erasures.is_empty() {
        output::note("nothing was erased");
    } else if settings.json() {
        erasures.iter().map(line).try_for_each(|line| output::json(&line))?;
    } else {
        output::line(render(&erasures, wide, Paper::of_stdout(wide)))?;
    }
    if more {
        output::note("there are older ones: a larger --limit lists them, too");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(of: &Tombstone) -> Line<'_> {
    Line {
        erasure: of.id,
        tenant: &of.scope.tenant,
        conversation: of.scope.conversation.as_deref(),
        user: &of.user,
        begun_at: of.begun_at,
        erased_at: of.erased_at,
        submitted_from: of.submitted.map(|(from, _)| from),
        submitted_to: of.submitted.map(|(_, to)| to),
        counts: &of.counts,
    }
}

fn render(erasures: &[Tombstone], wide: bool, paper: Paper) -> String {
    let rows: Vec<_> = erasures.iter().map(if wide { wide_row } else { narrow_row }).collect();
    Table::new(paper, if wide { &WIDE } else { &NARROW }).part(&rows)
}

fn narrow_row(of: &Tombstone) -> Vec<Cell> {
    vec![
        erased(of).into(),
        of.scope.tenant.clone().into(),
        conversation(of).into(),
        of.user.clone().into(),
        of.counts.tasks.to_string().into(),
        of.counts.calls.to_string().into(),
    ]
}

fn wide_row(of: &Tombstone) -> Vec<Cell> {
    let (from, to) = of.submitted.map_or_else(Default::default, |(from, to)| (output::time(from), output::time(to)));
    let counts = &of.counts;
    let counted = [
        counts.tasks,
        counts.messages,
        counts.steps,
        counts.calls,
        counts.model_turns,
        counts.attempts,
        counts.late_reports,
        counts.dead_letters,
        counts.keys,
        counts.statistics,
        counts.tokens,
    ];
    let texts = [
        of.id.to_string(),
        output::time(of.begun_at),
        erased(of),
        of.scope.tenant.clone(),
        conversation(of),
        of.user.clone(),
        from,
        to,
    ];
    texts.into_iter().chain(counted.map(|count| count.to_string())).map(Cell::from).collect()
}

fn erased(of: &Tombstone) -> String {
    of.erased_at.map_or_else(|| "under way".to_owned(), output::time)
}

fn conversation(of: &Tombstone) -> String {
    of.scope.conversation.clone().unwrap_or_else(|| "(all)".to_owned())
}
