//! `redial workers`: the workers, their state and their tools.

use std::process::ExitCode;

use redial_api::WorkerItem;
use serde_json::{Map, Value, json};

use crate::{
    connect,
    list::{self, Field},
    output,
    settings::Settings,
    table,
};

/// A worker has slots of its own in each pool, and for each model: it reports their sum.
const RUNNING: &str = "running, all pools";
const FIELDS: &[Field<WorkerItem>] = &[
    Field::shortened("worker", 20, |worker, _| worker.worker.clone().into()),
    Field::wide("host", |worker, _| output::one_line(worker.host.as_deref().unwrap_or_default(), TOOLS).into()),
    Field::whole("state", |worker, _| table::state(state(worker))),
    Field::whole(RUNNING, |worker, _| format!("{} of {} slots", worker.running, worker.slots).into()),
    Field::wide("started", |worker, _| output::time(worker.started_at).into()),
    Field::whole("last seen", |worker, form| form.time(worker.last_seen_at).into()),
    Field::wide("version", |worker, _| output::one_line(&worker.version, TOOLS).into()),
    Field::shortened("tools", 8, |worker, form| {
        output::one_line(&worker.tools.join(" "), if form.wide { ALL_TOOLS } else { TOOLS }).into()
    }),
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
        workers.iter().try_for_each(|worker| output::json(&json(worker)))?;
    } else {
        list::print(settings, &store, FIELDS, &workers, wide).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--json` prints: the worker as `id`, without a host or waiting tools if there are none.
fn json(worker: &WorkerItem) -> Map<String, Value> {
    let Ok(Value::Object(fields)) = serde_json::to_value(worker) else { return Map::new() };
    let is_set = |(name, value): &(String, Value)| match name.as_str() {
        "host" => !value.is_null(),
        "waiting" => *value != json!([]),
        _ => true,
    };
    let named = |(name, value)| (if name == "worker" { "id".to_owned() } else { name }, value);
    fields.into_iter().filter(is_set).map(named).collect()
}

fn state(worker: &WorkerItem) -> &'static str {
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
        let worker = |id: &str, running, draining, alive: bool| WorkerItem {
            worker: id.to_owned(),
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
        insta::assert_snapshot!(list::both(FIELDS, now, &workers));
    }
}
