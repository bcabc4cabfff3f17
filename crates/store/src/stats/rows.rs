//! The rows of the statistics: one for each hour and key.

use std::ops::Range;

use sqlx::PgConnection;

use super::{
    histogram::Histogram,
    tally::{Key, Kind, Sums, Tally},
};
use crate::{
    Time,
    columns::{bigint, column, unsigned},
};

/// Which of the names of rows stay apart when they are added up: the hour, the tool, and the other three.
pub(super) type Apart = [bool; 5];

/// Reads the sums of these hours: of a tenant or of all, of a tool or of all.
pub(super) async fn read(
    db: &mut PgConnection,
    kind: Kind,
    hours: &Range<Time>,
    tenant: Option<&str>,
    tool: Option<&str>,
) -> Result<Tally, sqlx::Error> {
    let rows = sqlx::query!(
        "SELECT hour, tenant, tool, a, b, c, counts, durations FROM stats
         WHERE kind = $1 AND hour >= $2 AND hour < $3
             AND ($4::text IS NULL OR tenant = $4) AND ($5::text IS NULL OR tool = $5)",
        kind.as_str(),
        hours.start,
        hours.end,
        tenant,
        tool
    );
    let rows = rows.fetch_all(db).await?.into_iter().map(|row| {
        let key = Key { kind, hour: row.hour, tenant: row.tenant, tool: row.tool, names: [row.a, row.b, row.c] };
        let durations = Histogram::from_column(&row.durations);
        (key, Sums { counts: row.counts.into_iter().map(unsigned).collect(), durations })
    });
    Ok(rows.collect())
}

/// Reads the counts of these hours, without durations, added up but for what stays apart; the hour of the others is the first.
pub(super) async fn add_up(
    db: &mut PgConnection,
    kind: Kind,
    hours: &Range<Time>,
    [tenant, tool]: [Option<&str>; 2],
    [by_hour, by_tool, by_a, by_b, by_c]: Apart,
) -> Result<Tally, sqlx::Error> {
    let rows = sqlx::query_file!(
        "sql/add_up_stats.sql",
        kind.as_str(),
        hours.start,
        hours.end,
        tenant,
        tool,
        by_hour,
        by_tool,
        by_a,
        by_b,
        by_c
    );
    let rows = rows.fetch_all(db).await?.into_iter().map(|row| {
        let key = Key { kind, hour: row.hour, tenant: row.tenant, tool: row.tool, names: [row.a, row.b, row.c] };
        (key, Sums::new(row.counts.into_iter().map(unsigned).collect::<Vec<_>>()))
    });
    Ok(rows.collect())
}

/// Writes sums over those that are there.
pub(super) async fn write(db: &mut PgConnection, tally: &Tally) -> Result<(), sqlx::Error> {
    let rows: Vec<(&Key, &Sums)> = tally.iter().collect();
    let name = |n: usize| column(&rows, |(key, _)| key.names[n].clone());
    let counts = |(_, sums): &(&Key, &Sums)| {
        let counts: Vec<String> = sums.counts.iter().map(|count| bigint(*count).to_string()).collect();
        format!("{{{}}}", counts.join(","))
    };
    sqlx::query!(
        "INSERT INTO stats (kind, hour, tenant, tool, a, b, c, counts, durations)
         SELECT kind, hour, tenant, tool, a, b, c, counts::bigint[], durations::int[]
         FROM UNNEST($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
             AS i (kind, hour, tenant, tool, a, b, c, counts, durations)
         ON CONFLICT (kind, hour, tenant, tool, a, b, c) DO UPDATE
         SET counts = EXCLUDED.counts, durations = EXCLUDED.durations",
        &column(&rows, |(key, _)| key.kind.as_str().to_owned()),
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &name(0),
        &name(1),
        &name(2),
        &column(&rows, counts),
        &column(&rows, |(_, sums)| sums.durations.to_column()),
    )
    .execute(db)
    .await
    .map(|_| ())
}
