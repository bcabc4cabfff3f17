//! `redial bench`: Redial against the floor, on the same servers, in the same run.
//!
//! The floor is the bare work that any system of this shape must do for a call: one insert, one message to a worker,
//! one update to running, one message back, one update to done with the result inserted; in batches, pipelined, with
//! the same durability. Rounds alternate between the two, so that a noisy machine harms both alike, and ratios of
//! medians are what counts.

mod cpu;
mod floor;
mod load;

use std::{path::Path, process::ExitCode, time::Duration};

use redial_queue::Queue;
use redial_servers::Process;
use serde::Serialize;

use self::{cpu::CpuMeter, floor::Bench, load::Load};
use crate::{
    cli::BenchArgs,
    commands::{queue, store},
    output,
    settings::{DevAddresses, Settings},
};

/// Where a stack of its own keeps its data.
const FOLDER: &str = ".redial/bench";

/// What one side did in one round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// Calls per second, from the first submission to the last result on record.
    pub(super) per_second: f64,
    /// Latencies of calls one after another, sorted.
    pub(super) p50: Duration,
    /// The 99th percentile.
    pub(super) p99: Duration,
    /// Processor time of all processes for 1,000 calls.
    pub(super) cpu_per_1000: Option<Duration>,
}

/// Medians over the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    calls_per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_seconds_per_1000_calls: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Report {
    calls: u32,
    rounds: u32,
    sequential: u32,
    redial: Side,
    floor: Side,
    throughput_ratio: f64,
    p50_ratio: f64,
    p99_ratio: f64,
}

pub(crate) async fn run(settings: &Settings, args: &BenchArgs) -> anyhow::Result<ExitCode> {
    // With servers given or a `redial dev` running here, that is what is measured; else a stack of its own.
    let own = if settings.queue("redial-bench").is_err() { Some(start_stack().await?) } else { None };
    let settings = match &own {
        Some((_, dev)) => &settings.with_dev(dev.clone()),
        None => settings,
    };
    let report = measure(settings, args).await?;
    if let Some((stack, _)) = own {
        stack.stop(redial_servers::Signal::TERM, Duration::from_secs(20)).await;
    }
    if settings.json() {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts `redial dev` as a process of its own, on an empty folder.
async fn start_stack() -> anyhow::Result<(Process, DevAddresses)> {
    let folder = Path::new(FOLDER);
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let mut command = Process::command(std::env::current_exe()?)?;
    command.args(["dev", "--slots", "1000", "--folder", FOLDER]);
    let log = std::fs::File::create(folder.join("dev.log"))?;
    command.stdout(log.try_clone()?).stderr(log);
    let process = Process::spawn(command)?;
    output::note("starting a stack of its own for the measurement …");
    loop {
        if let Ok(bytes) = std::fs::read(DevAddresses::path(folder)) {
            return Ok((process, serde_json::from_slice(&bytes)?));
        }
        if let Some(status) = process.exit_status() {
            anyhow::bail!("`redial dev` ended with {status}; see {FOLDER}/dev.log");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn measure(settings: &Settings, args: &BenchArgs) -> anyhow::Result<Report> {
    let (queue, store): (Queue, _) = (queue(settings).await?, store(settings).await?);
    let redial = Load::new(queue.clone(), store, CpuMeter::of(settings.dev_pid()));
    redial.warm_up().await?;
    let floor = Bench::create(&settings.database_url()?, &queue, CpuMeter::with_own(settings.dev_pid())).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        output::note(format!("round {round} of {}: floor …", args.rounds));
        theirs.push(floor.round(args.calls, args.sequential).await?);
        output::note(format!("round {round} of {}: redial …", args.rounds));
        ours.push(redial.round(args.calls, args.sequential).await?);
    }
    floor.remove().await?;
    let (redial, floor) = (Side::median(&ours), Side::median(&theirs));
    Ok(Report {
        calls: args.calls,
        rounds: args.rounds,
        sequential: args.sequential,
        throughput_ratio: redial.calls_per_second / floor.calls_per_second,
        p50_ratio: redial.p50_ms / floor.p50_ms,
        p99_ratio: redial.p99_ms / floor.p99_ms,
        redial,
        floor,
    })
}

impl Side {
    fn median(rounds: &[Round]) -> Self {
        let middle = |value: &dyn Fn(&Round) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let cpu = rounds.iter().all(|round| round.cpu_per_1000.is_some());
        Self {
            calls_per_second: middle(&|round| round.per_second),
            p50_ms: middle(&|round| ms(round.p50)),
            p99_ms: middle(&|round| ms(round.p99)),
            cpu_seconds_per_1000_calls: cpu
                .then(|| middle(&|round| round.cpu_per_1000.unwrap_or_default().as_secs_f64())),
        }
    }
}

fn print(report: &Report) {
    let Report { redial, floor, .. } = report;
    let cpu =
        |side: &Side| side.cpu_seconds_per_1000_calls.map_or("not measured".to_owned(), |cpu| format!("{cpu:.3}"));
    let row = |name: &str, ours: String, theirs: String, ratio: String| vec![name.to_owned(), ours, theirs, ratio];
    output::line(format!(
        "medians of {} rounds; {} echo calls with 200 bytes of arguments, then {} one after another\n",
        report.rounds, report.calls, report.sequential
    ));
    let rows = vec![
        row(
            "calls/s",
            format!("{:.0}", redial.calls_per_second),
            format!("{:.0}", floor.calls_per_second),
            format!("{:.0} % of the floor", report.throughput_ratio * 100.0),
        ),
        row(
            "latency p50",
            format!("{:.2} ms", redial.p50_ms),
            format!("{:.2} ms", floor.p50_ms),
            format!("{:.1} × the floor", report.p50_ratio),
        ),
        row(
            "latency p99",
            format!("{:.2} ms", redial.p99_ms),
            format!("{:.2} ms", floor.p99_ms),
            format!("{:.1} × the floor", report.p99_ratio),
        ),
        row("CPU s per 1,000 calls", cpu(redial), cpu(floor), String::new()),
    ];
    output::line(output::table(&["", "Redial", "floor", "ratio"], rows));
}
