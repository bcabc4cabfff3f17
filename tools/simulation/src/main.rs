//! Plays histories of the protocol and says what was seen; exit code 1 if an invariant does not hold.

use std::{io::Write, num::NonZero, process::ExitCode, thread};

use clap::Parser;
use redial_simulation::{Plan, Run, describe, play, size_of};

/// Plays random histories of the protocol and checks the invariants.
#[derive(Parser)]
#[command(name = "redial-simulation")]
struct Arguments {
    /// How many histories to play.
    #[arg(long, default_value_t = 1_000_000)]
    histories: u64,
    /// The seed of the first; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; all cores by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Only tell the history of `--seed`.
    #[arg(long)]
    tell: bool,
    /// Its size, if it is not the usual one of its seed.
    #[arg(long, requires = "tell")]
    size: Option<u32>,
}

fn main() -> ExitCode {
    let Arguments { histories, seed, threads, tell: only_tell, size } = Arguments::parse();
    if only_tell {
        let log = describe(&Plan::new(seed, size.unwrap_or_else(|| size_of(seed))), None);
        say(&log.join("\n"));
        return ExitCode::SUCCESS;
    }
    let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(2, NonZero::get));
    match play(&Run { seed, histories, threads, mutation: None }) {
        Ok(tally) => {
            say(&format!("{tally}\n  seeds {seed} to {}, {threads} threads", seed.saturating_add(histories - 1)));
            ExitCode::SUCCESS
        }
        Err(failed) => {
            say(&failed.to_string());
            ExitCode::FAILURE
        }
    }
}

/// A reader that went away is no error.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
