//! Feeds damaged inputs to every decoder, then growing ones; exits with code 1 if one panicked or took too long.

use std::{io::Write, num::NonZero, process::ExitCode, thread};

use clap::Parser;
use redial_fuzz::{Growth, Run, growth, run};

/// Feeds damaged inputs to every decoder of what comes from outside.
#[derive(Parser)]
#[command(name = "redial-fuzz")]
struct Arguments {
    /// How many inputs, over all decoders.
    #[arg(long, default_value_t = 10_000_000)]
    inputs: u64,
    /// Decides every input.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; all cores by default.
    #[arg(long)]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let Arguments { inputs, seed, threads } = Arguments::parse();
    let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(2, NonZero::get));
    let progress = |done| eprintln!("fuzz: {done} inputs");
    let outcome = run(&Run { seed, inputs, threads, progress });
    print(&format!("{outcome}  seed {seed}, {threads} threads\n"));
    let grown = growth();
    let superlinear = grown.iter().filter(|growth| growth.is_superlinear()).count();
    print(&format!("processor time for 16 KiB and for 128 KiB of the slowest text: {superlinear} grow faster than it"));
    for growth in &grown {
        print(&format!("{growth}{}", if Growth::is_superlinear(growth) { "  FASTER" } else { "" }));
    }
    if outcome.findings.is_empty() && superlinear == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ignores that the reader closed the pipe.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
