//! What dispatchers and workers cost that have nothing to do.

use redial_engine::outage;

use super::{inputs as given, table::Table};

/// A loop that runs in every dispatcher.
struct Loop {
    every: f64,
    /// Statements on Postgres.
    statements: f64,
    /// Messages of nats-server, in and out.
    messages: f64,
    /// Rows of workers that it reads, as a part of all.
    of_workers: f64,
}

const fn looped(every: f64, statements: f64, messages: f64, of_workers: f64) -> Loop {
    Loop { every, statements, messages, of_workers }
}

/// Below: a request of JetStream is a message in and one out, and so is its answer.
const ASKED: f64 = 4.0;

/// What each dispatcher does again and again, with one consumer of jobs.
fn loops() -> Vec<Loop> {
    let second = outage::INTERVAL.as_secs_f64();
    vec![
        // The sweep over calls: BEGIN, the look, COMMIT, and when the next one is due.
        looped(second, 4.0, 0.0, 0.0),
        // The feeder: tenants that wait; the depths of the stream.
        looped(given::FEEDING.value, 1.0, ASKED, 0.0),
        // The workers, and the database's time.
        looped(given::LOOKING.value, 2.0, 0.0, 1.0),
        looped(given::SLOW.value, 2.0, 0.0, 1.0),
        // The watch: time, replicas, the stream on record; three streams and their consumers, and the depths once more.
        looped(second, 3.0, 7.0 * ASKED, 0.0),
        // The sweep over tasks, webhooks, redrives.
        looped(1.0, 3.0, 0.0, 0.0),
        // Erasures.
        looped(5.0, 1.0, 0.0, 0.0),
        looped(given::REGISTRY.value, 2.0, 0.0, 0.0),
        looped(given::ROLL_UP.value, 4.0, 0.0, 0.0),
        looped(given::PRUNING.value, 10.0, 0.0, 1.0),
        // Pulls of submissions and of reports: each a request, and the end of it.
        looped(given::PULL.value, 0.0, 2.0 * 2.0, 0.0),
    ]
}

/// Load of idle dispatchers and workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) statements: f64,
    pub(super) beats: f64,
    pub(super) rows: f64,
    /// Cores of Postgres for the looks at the workers, and for everything.
    pub(super) cores_of_looks: f64,
    pub(super) cores: f64,
    pub(super) messages: f64,
}

/// `workers` have one pool each.
pub(super) fn idle(dispatchers: f64, workers: f64) -> Idle {
    let beats = workers / (given::LEASE.value / 3.0);
    let per_second = |of: fn(&Loop) -> f64| dispatchers * loops().iter().map(|one| of(one) / one.every).sum::<f64>();
    let looped = per_second(|one| one.statements);
    let rows = per_second(|one| one.of_workers) * workers;
    let cores_of_looks = dispatchers * workers / given::LOOKING.value * given::LOOKED_UP.value;
    let beating = beats * given::BEAT.value;
    // A heartbeat is answered. An idle worker's pull ends with a message, and is sent again.
    let of_workers = beats * 4.0 + workers / given::PULL.value * 2.0;
    Idle {
        statements: looped + beats,
        beats,
        rows: rows + beats,
        cores_of_looks,
        cores: cores_of_looks + beating + looped * given::READ.value,
        messages: per_second(|one| one.messages) + of_workers,
    }
}

/// Of dispatchers, and of workers that have one pool each.
fn subscriptions(dispatchers: f64, workers: f64) -> f64 {
    dispatchers * given::SUBSCRIPTIONS_OF_DISPATCHER.value + workers * given::SUBSCRIPTIONS_OF_WORKER.value
}

pub(super) fn table() -> Table {
    let title = "(a) nothing to do: per second, with one pool whose workers have one identity and the same tools";
    let columns = vec![
        "dispatchers",
        "workers",
        "connections",
        "GB of them",
        "statements",
        "heartbeats",
        "rows of workers",
        "cores",
        "for looks",
        "NATS messages",
        "subscriptions",
        "pulls refused",
        "logins refused",
        "rows counted",
    ];
    let mut table = Table::new(title, columns);
    for dispatchers in [1.0, 10.0, 100.0] {
        for workers in [10.0, 100.0, 1_000.0, 10_000.0] {
            let idle = idle(dispatchers, workers);
            let connections = dispatchers * given::CONNECTIONS.value;
            table.add(vec![
                dispatchers.into(),
                workers.into(),
                connections.into(),
                (connections * given::BACKEND.value / 1_000.0).into(),
                idle.statements.into(),
                idle.beats.into(),
                idle.rows.into(),
                idle.cores.into(),
                idle.cores_of_looks.into(),
                idle.messages.into(),
                subscriptions(dispatchers, workers).into(),
                (workers - given::PULLS.value).max(0.0).into(),
                (workers - given::LOGINS.value).max(0.0).into(),
                // With metrics, and a backlog that is as large as what is counted.
                (dispatchers / given::LAG.value * given::COUNTED.value).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_with_dispatchers_times_workers_and_heartbeats_do_not() {
        let (one, all) = (idle(1.0, 1_000.0), idle(100.0, 1_000.0));
        assert!((one.beats - 200.0).abs() < 1e-9 && (all.beats - 200.0).abs() < 1e-9);
        assert!((all.cores_of_looks / one.cores_of_looks - 100.0).abs() < 1e-9);
        assert!((idle(100.0, 10_000.0).cores_of_looks - 2.5).abs() < 1e-9, "25 ms, a hundred times a second");
    }
}
