//! The rows of the statistics: one for each hour and key.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use sqlx::PgConnection;

use super::{
    histogram::Histogram,
    question::{ModelsBy, ModelsQuestion},
    tally::{AttemptKey, AttemptSums, CallKey, CallSums, ModelKey, ModelSums, PlaceKey, Tally, UsageSums, What},
};
use crate::{
    Time,
    columns::{bigint, column, unsigned},
};

/// The sums of an hour.
pub(super) async fn read_hour(db: &mut PgConnection, hour: Time) -> Result<Tally, sqlx::Error> {
    let until = hour + TimeDelta::hours(1);
    Ok(Tally {
        calls: read_calls(&mut *db, hour, until, None, None).await?,
        attempts: read_attempts(&mut *db, hour, until, None, None).await?,
        models: sum_models(&mut *db, hour, until, false, None).await?,
        days: BTreeMap::new(),
        places: sum_places(db, hour, until, None).await?,
    })
}

/// The sums of calls of these hours, of a tenant or of all, of a tool or of all.
pub(super) async fn read_calls(
    db: &mut PgConnection,
    from: Time,
    until: Time,
    tenant: Option<&str>,
    tool: Option<&str>,
) -> Result<BTreeMap<CallKey, CallSums>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT * FROM call_stats
         WHERE hour >= $1 AND hour < $2 AND ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR tool = $4)",
        from,
        until,
        tenant,
        tool
    );
    let rows = rows.fetch_all(db).await?;
    let mut calls = BTreeMap::new();
    for row in rows {
        let key = CallKey { hour: row.hour, tenant: row.tenant, tool: row.tool, state: row.state, class: row.class };
        let usage = UsageSums {
            answers: unsigned(row.answers),
            input_tokens: unsigned(row.input_tokens),
            output_tokens: unsigned(row.output_tokens),
            cost_micros: unsigned(row.cost_micros),
            tokens_unknown: unsigned(row.tokens_unknown),
            cost_unknown: unsigned(row.cost_unknown),
        };
        let sums = CallSums {
            calls: unsigned(row.calls),
            retries: unsigned(row.retries),
            corrections: unsigned(row.corrections),
            durations: Histogram::from_column(&row.durations),
            usage,
        };
        calls.insert(key, sums);
    }
    Ok(calls)
}

/// The sums of attempts of these hours, of a tenant or of all, of a tool or of all.
pub(super) async fn read_attempts(
    db: &mut PgConnection,
    from: Time,
    until: Time,
    tenant: Option<&str>,
    tool: Option<&str>,
) -> Result<BTreeMap<AttemptKey, AttemptSums>, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT * FROM attempt_stats
         WHERE hour >= $1 AND hour < $2 AND ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR tool = $4)",
        from,
        until,
        tenant,
        tool
    );
    let rows = rows.fetch_all(db).await?;
    let mut attempts = BTreeMap::new();
    for row in rows {
        let key = AttemptKey { hour: row.hour, tenant: row.tenant, worker: row.worker, tool: row.tool };
        let sums = AttemptSums {
            attempts: unsigned(row.attempts),
            failed: unsigned(row.failed),
            durations: Histogram::from_column(&row.durations),
        };
        attempts.insert(key, sums);
    }
    Ok(attempts)
}

/// The sums of models of these hours, or with `days` of these days: of a tenant, under keys that hold only what its question groups by or names, or all.
pub(super) async fn sum_models(
    db: &mut PgConnection,
    from: Time,
    until: Time,
    days: bool,
    asked: Option<(&str, &ModelsQuestion)>,
) -> Result<BTreeMap<ModelKey, ModelSums>, sqlx::Error> {
    let groups = |by: fn(&ModelsQuestion) -> bool| asked.is_none_or(|(_, question)| by(question));
    let of = |name: fn(&ModelsQuestion) -> Option<&str>| asked.and_then(|(_, question)| name(question));
    let rows = sqlx::query_file!(
        "sql/sum_models.sql",
        from,
        until,
        asked.map(|(tenant, _)| tenant),
        groups(|asked| matches!(asked.by, ModelsBy::Hour | ModelsBy::Day)),
        groups(|asked| asked.agent.is_some() || asked.by == ModelsBy::Agent),
        groups(|asked| asked.model.is_some() || matches!(asked.by, ModelsBy::Model | ModelsBy::ModelAndTool)),
        groups(|asked| asked.tool.is_some() || matches!(asked.by, ModelsBy::Tool | ModelsBy::ModelAndTool)),
        of(|asked| asked.agent.as_deref()),
        of(|asked| asked.model.as_deref()),
        of(|asked| asked.tool.as_deref()),
        days,
    );
    let rows = rows.fetch_all(db).await?;
    let sums = rows.into_iter().map(|row| {
        let key = ModelKey { hour: row.hour, tenant: row.tenant, agent: row.agent, model: row.model, tool: row.tool };
        let sums = ModelSums {
            calls: unsigned(row.calls),
            right_at_once: unsigned(row.right_at_once),
            repaired: unsigned(row.repaired),
            wrong: unsigned(row.wrong),
            corrected: [unsigned(row.corrected_1), unsigned(row.corrected_2), unsigned(row.corrected_3)],
            usage: UsageSums {
                answers: unsigned(row.answers),
                input_tokens: unsigned(row.input_tokens),
                output_tokens: unsigned(row.output_tokens),
                cost_micros: unsigned(row.cost_micros),
                tokens_unknown: unsigned(row.tokens_unknown),
                cost_unknown: unsigned(row.cost_unknown),
            },
        };
        (key, sums)
    });
    Ok(sums.collect())
}

/// The places in arguments over these hours, all under the first: of a tool of a tenant, or all.
pub(super) async fn sum_places(
    db: &mut PgConnection,
    from: Time,
    until: Time,
    asked: Option<(&str, &str)>,
) -> Result<BTreeMap<PlaceKey, u64>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT tenant, tool, what, pointer, rule, sum(calls)::bigint AS "calls!" FROM pointer_stats
           WHERE hour >= $1 AND hour < $2 AND ($3::text IS NULL OR tenant = $3) AND ($4::text IS NULL OR tool = $4)
           GROUP BY 1, 2, 3, 4, 5"#,
        from,
        until,
        asked.map(|(tenant, _)| tenant),
        asked.map(|(_, tool)| tool),
    );
    let rows = rows.fetch_all(db).await?;
    let sums = rows.into_iter().map(|row| {
        let what = if row.what == What::Repair.as_str() { What::Repair } else { What::Error };
        let (tenant, tool, pointer, rule) = (row.tenant, row.tool, row.pointer, row.rule);
        (PlaceKey { hour: from, tenant, tool, what, pointer, rule }, unsigned(row.calls))
    });
    Ok(sums.collect())
}

/// Writes sums, over those that are there; sums of days are added to them.
pub(super) async fn write(db: &mut PgConnection, tally: &Tally) -> Result<(), sqlx::Error> {
    let rows: Vec<(&CallKey, &CallSums)> = tally.calls.iter().collect();
    sqlx::query_file!(
        "sql/write_call_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(key, _)| key.state.clone()),
        &column(&rows, |(key, _)| key.class.clone()),
        &column(&rows, |(_, sums)| bigint(sums.calls)),
        &column(&rows, |(_, sums)| bigint(sums.retries)),
        &column(&rows, |(_, sums)| bigint(sums.corrections)),
        &column(&rows, |(_, sums)| sums.durations.to_column()),
        &column(&rows, |(_, sums)| bigint(sums.usage.answers)),
        &column(&rows, |(_, sums)| bigint(sums.usage.input_tokens)),
        &column(&rows, |(_, sums)| bigint(sums.usage.output_tokens)),
        &column(&rows, |(_, sums)| bigint(sums.usage.cost_micros)),
        &column(&rows, |(_, sums)| bigint(sums.usage.tokens_unknown)),
        &column(&rows, |(_, sums)| bigint(sums.usage.cost_unknown)),
    )
    .execute(&mut *db)
    .await?;
    let rows: Vec<(&AttemptKey, &AttemptSums)> = tally.attempts.iter().collect();
    sqlx::query_file!(
        "sql/write_attempt_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.worker.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(_, sums)| bigint(sums.attempts)),
        &column(&rows, |(_, sums)| bigint(sums.failed)),
        &column(&rows, |(_, sums)| sums.durations.to_column()),
    )
    .execute(&mut *db)
    .await?;
    write_models(&mut *db, tally).await?;
    write_places(db, &tally.places).await
}

/// Writes sums of models over those of their hours, and adds to those of their days.
async fn write_models(db: &mut PgConnection, Tally { models, days, .. }: &Tally) -> Result<(), sqlx::Error> {
    macro_rules! write {
        ($file:literal, $models:expr) => {{
            let rows: Vec<(&ModelKey, &ModelSums)> = $models.iter().collect();
            sqlx::query_file!(
                $file,
                &column(&rows, |(key, _)| key.hour),
                &column(&rows, |(key, _)| key.tenant.clone()),
                &column(&rows, |(key, _)| key.agent.clone()),
                &column(&rows, |(key, _)| key.model.clone()),
                &column(&rows, |(key, _)| key.tool.clone()),
                &column(&rows, |(_, sums)| bigint(sums.calls)),
                &column(&rows, |(_, sums)| bigint(sums.right_at_once)),
                &column(&rows, |(_, sums)| bigint(sums.repaired)),
                &column(&rows, |(_, sums)| bigint(sums.wrong)),
                &column(&rows, |(_, sums)| bigint(sums.corrected[0])),
                &column(&rows, |(_, sums)| bigint(sums.corrected[1])),
                &column(&rows, |(_, sums)| bigint(sums.corrected[2])),
                &column(&rows, |(_, sums)| bigint(sums.usage.answers)),
                &column(&rows, |(_, sums)| bigint(sums.usage.input_tokens)),
                &column(&rows, |(_, sums)| bigint(sums.usage.output_tokens)),
                &column(&rows, |(_, sums)| bigint(sums.usage.cost_micros)),
                &column(&rows, |(_, sums)| bigint(sums.usage.tokens_unknown)),
                &column(&rows, |(_, sums)| bigint(sums.usage.cost_unknown)),
            )
            .execute(&mut *db)
            .await?
        }};
    }
    write!("sql/write_model_stats.sql", models);
    write!("sql/write_model_day_stats.sql", days);
    Ok(())
}

async fn write_places(db: &mut PgConnection, places: &BTreeMap<PlaceKey, u64>) -> Result<(), sqlx::Error> {
    let rows: Vec<(&PlaceKey, &u64)> = places.iter().collect();
    sqlx::query_file!(
        "sql/write_pointer_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(key, _)| key.what.as_str().to_owned()),
        &column(&rows, |(key, _)| key.pointer.clone()),
        &column(&rows, |(key, _)| key.rule.clone()),
        &column(&rows, |(_, calls)| bigint(**calls)),
    )
    .execute(db)
    .await
    .map(|_| ())
}
