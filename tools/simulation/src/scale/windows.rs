//! The short queue, with the engine's own windows: one of each dispatcher, which all see the same stream.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use redial_engine::window::{Windows, pack_size};
use redial_records::{Backlog, BacklogPart, LiveConsumer};

use super::{
    inputs as given,
    numbers::{float, whole},
    table::Table,
};

const TOOL: &str = "tool";
const CONSUMER: &str = "default";

fn consumer(workers: u32) -> LiveConsumer {
    LiveConsumer {
        name: CONSUMER.to_owned(),
        pool: CONSUMER.to_owned(),
        tools: BTreeSet::from([TOOL.to_owned()]),
        slots: workers * whole(given::SLOTS.value) as u32,
        workers,
    }
}

/// What is simulated.
#[derive(Clone, Copy)]
pub(super) struct Flood {
    pub(super) dispatchers: u32,
    pub(super) workers: u32,
    /// Calls that workers claimed per second before.
    pub(super) rate: u32,
    /// Several tenants are declared.
    pub(super) tenants: bool,
    /// All dispatchers look at the stream at the same moment, and publish then; otherwise each sees what others published before.
    pub(super) together: bool,
}

/// Unclaimed jobs on the stream after a tenant's flood, while workers claim nothing.
pub(super) fn flood(flood: Flood) -> u64 {
    let mut all: Vec<Windows> = (0..flood.dispatchers).map(|_| warm(flood)).collect();
    let (mut stream, mut now, mut quiet) = (0, Duration::from_mins(1), 0);
    // What has arrived since the last look counts twice in the next one, so one look without a publication is not the end.
    while quiet < 3 {
        let before = stream;
        let mut published = 0;
        for windows in &mut all {
            let seen = if flood.together { before } else { before + published };
            published += look(windows, seen, now);
        }
        stream += published;
        now += Duration::from_millis(500);
        quiet = if published == 0 { quiet + 1 } else { 0 };
    }
    stream
}

/// A dispatcher that has granted its part of the calls for a while, and whose workers kept up.
fn warm(flood: Flood) -> Windows {
    let mut windows = Windows::default();
    windows.set_consumers(&[consumer(flood.workers)]);
    windows.expect_several_tenants(flood.tenants);
    for look in 0..40 {
        for _ in 0..flood.rate / flood.dispatchers / 2 {
            windows.claimed(TOOL);
        }
        windows.set_depths(&HashMap::new(), Duration::from_millis(look * 500));
    }
    windows
}

/// One look of a dispatcher; returns how many jobs it publishes.
fn look(windows: &mut Windows, seen: u64, now: Duration) -> u64 {
    let part = BacklogPart { tool: TOOL.to_owned(), tenant: "flood".to_owned(), backlog: Backlog::Job };
    windows.set_depths(&HashMap::from([((CONSUMER.to_owned(), TOOL.to_owned()), seen)]), now);
    windows.set_waiting([&part]);
    let mut published = 0;
    for order in windows.orders(&[part]) {
        let most = u64::from(order.most);
        windows.publish(&order.consumer, &order.part.tool, &order.part.tenant, most);
        for _ in 0..most {
            windows.arrived(&order.consumer, &order.part.tool);
        }
        published += most;
    }
    published
}

pub(super) fn table() -> Table {
    let title = "(e) unclaimed jobs of one tool on the stream after a flood of one tenant (the engine's windows)";
    let columns = vec![
        "calls/s",
        "tenants",
        "dispatchers",
        "workers",
        "in turn",
        "at the same moment",
        "s that a call waits behind them",
        "part of the stream",
    ];
    let mut table = Table::new(title, columns);
    for (rate, tenants) in [(10_000, false), (10_000, true), (1_000, true)] {
        for dispatchers in [1, 3, 10, 100] {
            for workers in [100, 10_000] {
                let of = |together| float(self::flood(Flood { dispatchers, workers, rate, tenants, together }));
                let (in_turn, together) = (of(false), of(true));
                table.add(vec![
                    rate.into(),
                    if tenants { "several" } else { "one" }.into(),
                    dispatchers.into(),
                    workers.into(),
                    in_turn.into(),
                    together.into(),
                    (together / f64::from(rate)).into(),
                    (together / given::STREAM.value).into(),
                ]);
            }
        }
    }
    table
}

pub(super) fn packs() -> Table {
    let title = "(f) jobs in a message, by jobs of a tool that are published together and live workers (the engine's pack_size)";
    let mut table = Table::new(title, vec!["jobs", "1 worker", "4", "10", "32", "64", "100", "128", "1,000", "10,000"]);
    for jobs in [16_u32, 64, 256, whole(given::PUBLISHED.value) as u32] {
        let mut row = vec![jobs.into()];
        let size = |workers| pack_size(&consumer(workers), jobs as usize) as u32;
        row.extend([1, 4, 10, 32, 64, 100, 128, 1_000, 10_000].map(|workers| size(workers).into()));
        table.add(row);
    }
    table
}

/// Jobs in a message, as the engine says.
pub(super) fn pack(workers: f64, jobs: f64) -> f64 {
    float(pack_size(&consumer(whole(workers) as u32), whole(jobs) as usize) as u64)
}

#[cfg(test)]
mod tests {
    use redial_engine::window::LEAST;

    use super::*;

    #[test]
    fn one_dispatcher_fills_a_window_and_each_other_one_may_add_half() {
        let of =
            |dispatchers, together| flood(Flood { dispatchers, workers: 100, rate: 100, tenants: false, together });
        assert!((LEAST * 7 / 8..=LEAST).contains(&of(1, false)), "{}", of(1, false));
        assert!((LEAST * 7 / 8..=LEAST).contains(&of(10, false)), "{}", of(10, false));
        assert_eq!(of(10, true), 5 * LEAST);
    }

    #[test]
    fn packs_end_where_workers_are_many() {
        assert_eq!([1.0, 10.0, 64.0, 65.0].map(|workers| whole(pack(workers, 512.0))), [16, 12, 2, 1]);
    }
}
