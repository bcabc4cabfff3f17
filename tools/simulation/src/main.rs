//! Plays histories of the protocol and prints a summary; exit code 1 if an invariant does not hold.

use std::{io::Write, process::ExitCode};

use clap::Parser;
use redial_simulation::{Plan, Run, describe, play, size_of};

/// Plays random histories of the protocol and checks the invariants.
#[derive(Parser)]
#[command(name = "redial-simulation")]
struct Arguments {
    /// How many histories to play.
    #[arg(long, default_value_t = 1_000_000)]
    histories: u64,
    /// The seed of the first history; the others count up from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only print the events of the history of `--seed`.
    #[arg(long)]
    describe: bool,
}

fn main() -> ExitCode {
    let Arguments { histories, seed, describe: only_describe } = Arguments::parse();
    if only_describe {
        print(&describe(&Plan::new(seed, size_of(seed)), None).join("\n"));
        return ExitCode::SUCCESS;
    }
    match play(&Run { seed, histories, mutation: None }) {
        Ok(tally) => {
            print(&format!("{tally}\n  seeds {seed} to {}", seed.saturating_add(histories - 1)));
            ExitCode::SUCCESS
        }
        Err(failed) => {
            print(&failed.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints a text; a closed pipe is not an error.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
