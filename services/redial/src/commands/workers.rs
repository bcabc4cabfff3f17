//! `redial workers`: the workers, their state and their tools.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_store::audit::WorkerRecord;

use crate::{
    connect, output,
    settings::Settings,
    table::{self, Cell, Column, Paper, Table},
};

/// A worker has slots of its own in each pool, and for each model: it reports their sum.
const RUNNING: &str = "running, all pools";
const NARROW: [Column; 5] = [
    Column::shortened("worker", 20),
    Column::whole("state"),
    Column::whole(RUNNING),
    Column::whole("last seen"),
    Column::shortened("tools", 8),
];
const WIDE: [Column; 8] = [
    Column::whole("worker"),
    Column::whole("host"),
    Column::whole("state"),
    Column::whole(RUNNING),
    Column::whole("started"),
    Column::whole("last seen"),
    Column::whole("version"),
    Column::whole("tools"),
];
/// Characters of the list of tools in the table, and in the wide one.
const TOOLS: usize = 200;
const ALL_TOOLS: usize = 4000;

pub(crate) async fn run(settings: &Settings, all: bool, wide: bool) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let workers = store.worker_records(all).await?;
    connect::note_missing_dispatcher(settings).await;
    if workers.is_empty() {
        output::note(if all {
            "no worker has registered yet"
        } else {
            "no worker is alive; --all lists dead ones, too"
        });
    } else if settings.json() {
        workers.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&workers, wide, Paper::of_stdout(wide), store.now().await?))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(workers: &[WorkerRecord], wide: bool, paper: Paper, now: DateTime<Utc>) -> String {
    let row = |worker: &WorkerRecord| if wide { wide_row(worker) } else { narrow_row(worker, now) };
    let rows: Vec<_> = workers.iter().map(row).collect();
    Table::new(paper, if wide { &WIDE } else { &NARROW }).part(&rows)
}

fn narrow_row(worker: &WorkerRecord, now: DateTime<Utc>) -> Vec<Cell> {
    vec![
        worker.id.clone().into(),
        table::state(state(worker)),
        running(worker),
        output::ago(worker.last_seen_at, now).into(),
        output::one_line(&worker.tools.join(" "), TOOLS).into(),
    ]
}

fn wide_row(worker: &WorkerRecord) -> Vec<Cell> {
    vec![
        worker.id.clone().into(),
        output::one_line(worker.host.as_deref().unwrap_or_default(), TOOLS).into(),
        table::state(state(worker)),
        running(worker),
        output::time(worker.started_at).into(),
        output::time(worker.last_seen_at).into(),
        output::one_line(&worker.version, TOOLS).into(),
        output::one_line(&worker.tools.join(" "), ALL_TOOLS).into(),
    ]
}

fn running(worker: &WorkerRecord) -> Cell {
    format!("{} of {} slots", worker.running, worker.slots).into()
}

fn state(worker: &WorkerRecord) -> &'static str {
    match (worker.alive, worker.draining) {
        (true, false) => "alive",
        (true, true) => "draining",
        (false, _) => "dead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_worker() {
        let worker = |id: &str, running, draining, alive: bool| WorkerRecord {
            id: id.to_owned(),
            host: alive.then(|| "rack-7".to_owned()),
            waiting: Vec::new(),
            version: "0.1.0".to_owned(),
            tools: vec!["book_flight".to_owned(), "echo".to_owned()],
            started_at: "2026-11-20T07:00:00Z".parse().unwrap(),
            slots: 64,
            running,
            draining,
            last_seen_at: "2026-11-20T08:00:00.5Z".parse().unwrap(),
            alive,
        };
        let workers = [
            worker("host-0123456789ab", 12, false, true),
            worker("host-123456789abc", 1, true, true),
            worker("host-23456789abcd", 0, true, false),
        ];
        let now = "2026-11-20T08:00:02Z".parse().unwrap();
        insta::assert_snapshot!("narrow", render(&workers, false, Paper::test(Some(80)), now));
        insta::assert_snapshot!("wide", render(&workers, true, Paper::test(None), now));
    }
}
