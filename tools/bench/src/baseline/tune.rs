//! `./dev bench tune`: measures the baseline with many tunings, to find the fastest.

use super::{Baseline, PACKED, PLAIN, SCHEMA, Tuning};
use crate::{
    cli::TuneArgs,
    meter::Reading,
    output::{note, println},
    report::table,
    samples::median,
    servers::Servers,
};

/// The grid.
const BATCHES: [usize; 6] = [100, 200, 500, 1000, 2000, 4000];
const AT_ONCE: [usize; 5] = [1, 2, 3, 5, 8];

/// One tuning, and what was measured with it in each round.
struct Tried {
    tuning: Tuning,
    rates: Vec<f64>,
    seconds: Vec<f64>,
}

/// See the module.
pub(crate) async fn run(args: &TuneArgs) -> anyhow::Result<()> {
    let servers = Servers::start(args.servers.settings()).await?;
    let tried = measure(&servers, args).await;
    servers.stop().await?;
    let mut tried = tried?;
    tried.sort_by(|a, b| a.tuning.pack.cmp(&b.tuning.pack).then(b.rate().total_cmp(&a.rate())));
    let head = ["calls a message", "a statement", "at once", "calls/s", "s per 1,000", ""];
    println(&table(&head, tried.iter().map(Tried::cells)))?;
    Ok(())
}

async fn measure(servers: &Servers, args: &TuneArgs) -> anyhow::Result<Vec<Tried>> {
    let database = servers.database().await?;
    let mut tried: Vec<Tried> = grid().map(Tried::new).collect();
    for round in 1..=args.rounds {
        // The machine changes in the course of a round; so its order does too.
        tried.rotate_left(usize::try_from(round)? * 7 % grid().count());
        for (done, one) in tried.iter_mut().enumerate() {
            note(&format!("round {round} of {}: {done} of {} …", args.rounds, grid().count()));
            let baseline = Baseline::create(&database.url, servers.nats_url(), one.tuning).await?;
            baseline.warm_up().await?;
            database.vacuum().await?;
            let before = Reading::take(&database, SCHEMA).await?;
            one.rates.push(baseline.throughput(args.calls).await?);
            let cost = before.until(&Reading::take(&database, SCHEMA).await?, args.calls);
            one.seconds.extend(cost.cpu());
            baseline.remove().await?;
        }
    }
    database.close().await;
    Ok(tried)
}

fn grid() -> impl Iterator<Item = Tuning> {
    let packs = [PLAIN.pack, PACKED.pack].into_iter();
    let with_batch = packs.flat_map(|pack| BATCHES.map(|batch| Tuning { pack, batch, ..PLAIN }));
    with_batch.flat_map(|tuning| AT_ONCE.map(|at_once| Tuning { at_once, ..tuning }))
}

impl Tried {
    const fn new(tuning: Tuning) -> Self {
        Self { tuning, rates: Vec::new(), seconds: Vec::new() }
    }

    fn rate(&self) -> f64 {
        median(self.rates.clone()).unwrap_or_default()
    }

    fn cells(&self) -> Vec<String> {
        let Tuning { pack, batch, at_once } = self.tuning;
        let chosen = if [PACKED, PLAIN].contains(&self.tuning) { "chosen" } else { "" };
        let seconds = median(self.seconds.clone()).map(|seconds| format!("{seconds:.3}")).unwrap_or_default();
        let numbers = [pack, batch, at_once].map(|number| number.to_string());
        numbers.into_iter().chain([format!("{:.0}", self.rate()), seconds, chosen.to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_is_in_the_grid() {
        assert!(grid().any(|tuning| tuning == PACKED) && grid().any(|tuning| tuning == PLAIN));
    }
}
