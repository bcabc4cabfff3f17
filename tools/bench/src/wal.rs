//! `./dev bench wal`: what writes the write-ahead log of a call, as Postgres's own `pg_waldump` reads it.

mod read;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::Context as _;

use self::read::{Log, Sum};
use crate::{
    baseline::{Baseline, PACKED},
    before::Before,
    cli::WalArgs,
    database::Database,
    fleet::{Fleet, Program},
    load::{Load, WORKER},
    output::{note, println},
    report::table,
    servers::Servers,
};

/// Relations and kinds of records with less on every side are not shown, in bytes for each call; the sums contain them.
const LITTLE: f64 = 2.0;
/// No segment may be removed before it was read.
const KEEP: (&str, &str) = ("wal_keep_size", "8GB");

/// The log of one side by relation and kind of record.
struct Written {
    side: &'static str,
    by: BTreeMap<(String, String), Sum>,
    /// All bytes, with those that no record has: padding, and heads of pages.
    all: u64,
}

/// See the module.
pub(crate) async fn run(args: &WalArgs) -> anyhow::Result<()> {
    let mut settings = args.servers.settings();
    settings.push((KEEP.0.to_owned(), KEEP.1.to_owned()));
    let servers = Servers::start(settings).await?;
    let sides = measure(&servers, args).await;
    servers.stop().await?;
    println(&render(&sides?, args.calls))?;
    Ok(())
}

async fn measure(servers: &Servers, args: &WalArgs) -> anyhow::Result<Vec<Written>> {
    let mut sides = Vec::new();
    if let Some(program) = &args.against {
        note("the older program …");
        let before = Before::prepare(servers, program).await?;
        sides.push(of_fleet("older program", before.fleet().await?, (&before.load(), &before.database), args).await?);
        before.close().await;
    }
    note("Redial …");
    let database = servers.database().await?;
    let mut fleet = Fleet::start(servers, &database, 1).await?;
    fleet.add_workers(1, Program::Redial, &WORKER).await?;
    sides.push(of_fleet("Redial", fleet, (&Load::new(&servers.queue, &database), &database), args).await?);
    note("the packed baseline …");
    let baseline = Baseline::create(&database.url, servers.nats_url(), PACKED).await?;
    baseline.warm_up().await?;
    let from = begin(&database).await?;
    baseline.throughput(args.calls).await?;
    sides.push(written("packed baseline", from, &database).await?);
    baseline.remove().await?;
    database.close().await;
    Ok(sides)
}

async fn of_fleet(
    side: &'static str,
    fleet: Fleet,
    (load, database): (&Load<'_>, &Database),
    args: &WalArgs,
) -> anyhow::Result<Written> {
    load.warm_up().await?;
    // The first calls after a checkpoint write whole pages; those of tables that fill up are soon new ones.
    let from = begin(database).await?;
    load.throughput(args.calls).await?;
    let written = written(side, from, database).await?;
    fleet.stop().await;
    Ok(written)
}

/// The position in the log from which a side is measured.
async fn begin(database: &Database) -> anyhow::Result<String> {
    database.vacuum().await?;
    database.wal_position().await
}

async fn written(side: &'static str, from: String, database: &Database) -> anyhow::Result<Written> {
    let (until, folder, names) =
        (database.wal_position().await?, database.setting("data_directory").await?, database.relations().await?);
    let all = database.wal_between(&from, &until).await?;
    let mut command = Command::new(redial_servers::postgres_program("pg_waldump")?);
    command.args(["--path", &format!("{folder}/pg_wal"), "--start", &from, "--end", &until]);
    let log = tokio::task::spawn_blocking(move || dump(command)).await??;
    let by = log.by_name(|database, relation| names.get(&(database, relation)).cloned());
    Ok(Written { side, by, all })
}

fn dump(mut command: Command) -> anyhow::Result<Log> {
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let output = process.stdout.take().context("the output of pg_waldump is a pipe")?;
    let mut log = Log::default();
    for line in BufReader::new(output).lines() {
        log.add(&line?)?;
    }
    let status = process.wait()?;
    anyhow::ensure!(status.success(), "pg_waldump ended with {status}");
    Ok(log)
}

/// A relation or kind of record, and its bytes for each call of each side.
struct Line {
    relation: String,
    record: String,
    bytes: Vec<f64>,
}

fn render(sides: &[Written], calls: u32) -> String {
    let mut relations: Vec<&str> =
        sides.iter().flat_map(|side| side.by.keys()).map(|(name, _)| name.as_str()).collect();
    relations.sort_unstable();
    relations.dedup();
    let mut lines: Vec<Line> = relations.into_iter().flat_map(|relation| of_relation(relation, sides, calls)).collect();
    let rest = |side: &Written| side.all.saturating_sub(side.by.values().map(|sum| sum.bytes).sum());
    let last = |name: &str, bytes: Vec<f64>| Line { relation: name.to_owned(), record: String::new(), bytes };
    lines.push(last("padding, heads of pages", sides.iter().map(|side| per_call(rest(side), calls)).collect()));
    lines.push(last("all", sides.iter().map(|side| per_call(side.all, calls)).collect()));
    let head: Vec<&str> = ["bytes per call", "record"].into_iter().chain(sides.iter().map(|side| side.side)).collect();
    table(&head, lines.into_iter().map(Line::cells))
}

/// All of a relation, then its kinds of records.
fn of_relation(relation: &str, sides: &[Written], calls: u32) -> Vec<Line> {
    let mut records: Vec<&str> = sides
        .iter()
        .flat_map(|side| side.by.keys())
        .filter(|(name, _)| name == relation)
        .map(|(_, record)| record.as_str())
        .collect();
    records.sort_unstable();
    records.dedup();
    let bytes = |record: &str| -> Vec<f64> {
        let key = (relation.to_owned(), record.to_owned());
        sides.iter().map(|side| per_call(side.by.get(&key).map_or(0, |sum| sum.bytes), calls)).collect()
    };
    let each: Vec<Line> = records
        .into_iter()
        .map(|record| Line { relation: String::new(), record: record.to_owned(), bytes: bytes(record) })
        .collect();
    let all: Vec<f64> = (0..sides.len()).map(|side| each.iter().map(|line| line.bytes[side]).sum()).collect();
    if all.iter().all(|bytes| *bytes < LITTLE) {
        return Vec::new();
    }
    let shown = each.into_iter().filter(|line| line.bytes.iter().any(|bytes| *bytes >= LITTLE));
    [Line { relation: relation.to_owned(), record: String::new(), bytes: all }].into_iter().chain(shown).collect()
}

fn per_call(bytes: u64, calls: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
    let bytes = bytes as f64;
    bytes / f64::from(calls)
}

impl Line {
    fn cells(self) -> Vec<String> {
        let bytes = self.bytes.into_iter().map(|bytes| format!("{bytes:.0}"));
        [self.relation, self.record].into_iter().chain(bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_compared_by_relation_and_record() {
        let side = |side, by: &[(&str, &str, u64)], all| {
            let sum = |bytes| Sum { records: 1, bytes };
            let by = by.iter().map(|(name, kind, bytes)| ((String::from(*name), String::from(*kind)), sum(*bytes)));
            Written { side, by: by.collect(), all }
        };
        let older = side("older program", &[("calls", "Heap INSERT", 40_000), ("calls_key", "Btree", 900)], 44_000);
        let redial = side(
            "Redial",
            &[("calls", "Heap INSERT", 30_000), ("attempts", "whole pages", 1_000), ("tools", "Heap LOCK", 90)],
            32_000,
        );
        insta::assert_snapshot!(render(&[older, redial], 100));
    }
}
