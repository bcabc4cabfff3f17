//! Lists erasures.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::ForgetCounts;
use redial_store::Tombstone;
use serde::Serialize;

use crate::{
    connect, output,
    settings::Settings,
    table::{Cell, Column, Paper, Table},
};

/// Erasures that are listed.
const MOST: u32 = 1_000;
const COLUMNS: [Column; 6] = [
    Column::whole("erased"),
    Column::shortened("tenant", 8),
    Column::shortened("conversation", 8),
    Column::shortened("by", 6),
    Column::whole("tasks"),
    Column::whole("calls"),
];

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    erasure: uuid::Uuid,
    tenant: &'a str,
    conversation: Option<&'a str>,
    actor: &'a str,
    begun_at: DateTime<Utc>,
    erased_at: Option<DateTime<Utc>>,
    submitted_from: Option<DateTime<Utc>>,
    submitted_to: Option<DateTime<Utc>>,
    counts: &'a ForgetCounts,
}

pub(super) async fn run(settings: &Settings, tenant: Option<&str>) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let mut erasures = store.tombstones(tenant, MOST + 1).await?;
    let more = erasures.len() > MOST as usize;
    erasures.truncate(MOST as usize);
    if erasures.is_empty() {
        output::note("nothing was erased");
    } else if settings.json() {
        erasures.iter().map(line).try_for_each(|line| output::json(&line))?;
    } else {
        output::line(render(&erasures, Paper::of_stdout(false)))?;
    }
    if more {
        output::note("there are older ones: SELECT * FROM tombstones ORDER BY erased_at");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(of: &Tombstone) -> Line<'_> {
    Line {
        erasure: of.id,
        tenant: &of.scope.tenant,
        conversation: of.scope.conversation.as_deref(),
        actor: &of.actor,
        begun_at: of.begun_at,
        erased_at: of.erased_at,
        submitted_from: of.submitted.map(|(from, _)| from),
        submitted_to: of.submitted.map(|(_, to)| to),
        counts: &of.counts,
    }
}

fn render(erasures: &[Tombstone], paper: Paper) -> String {
    let row = |of: &Tombstone| -> Vec<Cell> {
        vec![
            of.erased_at.map_or_else(|| "under way".to_owned(), output::time).into(),
            of.scope.tenant.clone().into(),
            of.scope.conversation.clone().unwrap_or_else(|| "(all)".to_owned()).into(),
            of.actor.clone().into(),
            of.counts.tasks.to_string().into(),
            of.counts.calls.to_string().into(),
        ]
    };
    let rows: Vec<_> = erasures.iter().map(row).collect();
    Table::new(paper, &COLUMNS).part(&rows)
}
