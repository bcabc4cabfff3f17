//! `redial workers`: the workers, their state and their tools.

use std::process::ExitCode;

use redial_store::audit::WorkerRecord;

use crate::{connect, output, settings::Settings};

const HEAD: [&str; 6] = ["worker", "state", "running", "last seen", "version", "tools"];
/// Characters of the list of tools in the table.
const TOOLS: usize = 60;

pub(crate) async fn run(settings: &Settings, all: bool) -> anyhow::Result<ExitCode> {
    let workers = connect::store(settings).await?.worker_records(all).await?;
    if workers.is_empty() {
        output::note(if all {
            "no worker has registered yet"
        } else {
            "no worker is alive; --all lists dead ones, too"
        });
    } else if settings.json() {
        workers.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&workers));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(workers: &[WorkerRecord]) -> String {
    let row = |worker: &WorkerRecord| {
        vec![
            worker.id.clone(),
            state(worker).to_owned(),
            format!("{} of {}", worker.running, worker.slots),
            output::time(worker.last_seen_at),
            output::one_line(&worker.version, TOOLS),
            output::one_line(&worker.tools.join(" "), TOOLS),
        ]
    };
    output::table(&HEAD, workers.iter().map(row).collect())
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
        let worker = |id: &str, running, draining, alive| WorkerRecord {
            id: id.to_owned(),
            version: "0.1.0".to_owned(),
            tools: vec!["book_flight".to_owned(), "echo".to_owned()],
            started_at: "2026-11-20T07:00:00Z".parse().unwrap(),
            slots: 64,
            running,
            draining,
            last_seen_at: "2026-11-20T08:00:00.5Z".parse().unwrap(),
            alive,
        };
        insta::assert_snapshot!(render(&[
            worker("host-0123456789ab", 12, false, true),
            worker("host-123456789abc", 1, true, true),
            worker("host-23456789abcd", 0, true, false),
        ]));
    }
}
