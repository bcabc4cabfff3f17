//! Lists erasures.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::ForgetCounts;
use redial_store::Tombstone;
use serde::Serialize;

use crate::{
    cli::ForgetArgs,
    connect,
    list::{self, Field, Form, List},
    output,
    settings::Settings,
};

/// Erasures that are listed unless `--limit` says otherwise.
const LIMIT: u32 = 1_000;
const FIELDS: &[Field<Tombstone>] = &[
    Field::wide("erasure", |of, _| of.id.to_string().into()),
    Field::wide("begun", |of, _| output::time(of.begun_at).into()),
    Field::whole("erased", |of, _| of.erased_at.map_or_else(|| "under way".to_owned(), output::time).into()),
    Field::shortened("tenant", 8, |of, _| of.scope.tenant.clone().into()),
    Field::shortened("conversation", 8, |of, _| of.scope.conversation.as_deref().unwrap_or("(all)").into()),
    Field::shortened("by", 6, |of, _| of.user.clone().into()),
    Field::wide("submitted from", |of, _| of.submitted.map(|(from, _)| output::time(from)).unwrap_or_default().into()),
    Field::wide("submitted to", |of, _| of.submitted.map(|(_, to)| output::time(to)).unwrap_or_default().into()),
    Field::whole("tasks", |of, _| of.counts.tasks.to_string().into()),
    Field::wide("messages", |of, _| of.counts.messages.to_string().into()),
    Field::wide("steps", |of, _| of.counts.steps.to_string().into()),
    Field::whole("calls", |of, _| of.counts.calls.to_string().into()),
    Field::wide("model turns", |of, _| of.counts.model_turns.to_string().into()),
    Field::wide("attempts", |of, _| of.counts.attempts.to_string().into()),
    Field::wide("late reports", |of, _| of.counts.late_reports.to_string().into()),
    Field::wide("dead letters", |of, _| of.counts.dead_letters.to_string().into()),
    Field::wide("keys", |of, _| of.counts.keys.to_string().into()),
    Field::wide("statistics", |of, _| of.counts.statistics.to_string().into()),
    Field::wide("tokens", |of, _| of.counts.tokens.to_string().into()),
];

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
    let (erasures, more) = list::first(store.tombstones(tenant.as_deref(), limit.saturating_add(1)).await?, limit);
    if erasures.is_empty() {
        output::note("nothing was erased");
    } else if settings.json() {
        erasures.iter().map(line).try_for_each(|line| output::json(&line))?;
    } else {
        output::line(List::of_stdout(FIELDS, Form::new(wide, store.now().await?)).part(&erasures))?;
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
