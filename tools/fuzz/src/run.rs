//! Many damaged inputs, on several threads.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redial_simulation::Random;

use crate::{
    damage::{below, damage},
    targets::{Decoder, TARGETS, Target},
};

/// How many inputs, and which.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Decides every input.
    pub seed: u64,
    /// How many inputs, over all decoders.
    pub inputs: u64,
    /// Threads that share the inputs.
    pub threads: usize,
    /// Gets the number of inputs so far, about twenty times in a run.
    pub progress: fn(u64),
}

/// Inputs that a thread takes at once; they follow from one seed of their own.
const CHUNK: u64 = 1024;
/// How often a run reports its progress.
const REPORTS: u64 = 20;
/// Findings of one decoder that are saved: the others are likely the same.
const MAX_FINDINGS: usize = 5;

/// An input on which a decoder panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The decoder.
    pub target: &'static str,
    /// The message of the panic.
    pub panic: String,
    /// The bytes that it was given.
    pub input: Vec<u8>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    b\"{}\"", self.target, self.panic, self.input.escape_ascii())
    }
}

/// What happened to the inputs of one decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inputs.
    pub inputs: u64,
    /// Those that were read.
    pub read: u64,
    /// Those on which it panicked.
    pub panics: u64,
    /// Wall-clock time of the slowest one.
    pub slowest: Duration,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One entry for each decoder.
    pub counts: Vec<(&'static str, Counts)>,
    /// At most five for each decoder.
    pub findings: Vec<Finding>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// Inputs, over all decoders.
    pub fn inputs(&self) -> u64 {
        self.counts.iter().map(|(_, counts)| counts.inputs).sum()
    }
}

/// Feeds damaged inputs to every decoder.
pub fn run(run: &Run) -> Outcome {
    run_with(run, &TARGETS)
}

/// Feeds damaged inputs to these decoders, to each as many as its weight says.
pub fn run_with(run: &Run, targets: &[Target]) -> Outcome {
    let began = Instant::now();
    let (next, quiet) = (AtomicU64::new(0), AtomicBool::new(false));
    let findings = Mutex::new(Vec::new());
    let hook = std::panic::take_hook();
    // Panics are reported at the end; only the first prints its message when it happens.
    std::panic::set_hook(Box::new(move |info| {
        if !quiet.swap(true, Ordering::Relaxed) {
            hook(info);
        }
    }));
    let all: Vec<Vec<Counts>> = std::thread::scope(|scope| {
        let start = || scope.spawn(|| Thread::new(targets).work(run, &next, &findings));
        let threads: Vec<_> = (0..run.threads.max(1)).map(|_| start()).collect();
        let resume = |panic| std::panic::resume_unwind(panic);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(resume)).collect()
    });
    drop(std::panic::take_hook());
    let mut counts: Vec<_> = targets.iter().map(|target| (target.name, Counts::default())).collect();
    for thread in all {
        counts.iter_mut().zip(thread).for_each(|((_, sum), more)| sum.add(more));
    }
    let mut findings: Vec<Finding> = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    findings.sort_by(|one, other| (one.target, one.input.len()).cmp(&(other.target, other.input.len())));
    Outcome { counts, findings, took: began.elapsed() }
}

impl Counts {
    fn add(&mut self, more: Self) {
        self.inputs += more.inputs;
        self.read += more.read;
        self.panics += more.panics;
        self.slowest = self.slowest.max(more.slowest);
    }
}

/// One thread with its own decoders.
struct Thread<'a> {
    targets: &'a [Target],
    decoders: Vec<Decoder>,
    corpora: Vec<Vec<Vec<u8>>>,
    /// The number of a target, as often as its weight.
    wheel: Vec<usize>,
    counts: Vec<Counts>,
    input: Vec<u8>,
}

impl<'a> Thread<'a> {
    fn new(targets: &'a [Target]) -> Self {
        let wheel = targets.iter().enumerate().flat_map(|(n, target)| std::iter::repeat_n(n, target.weight));
        Self {
            targets,
            decoders: targets.iter().map(|target| (target.decoder)()).collect(),
            corpora: targets.iter().map(|target| (target.corpus)()).collect(),
            wheel: wheel.collect(),
            counts: vec![Counts::default(); targets.len()],
            input: Vec::new(),
        }
    }

    fn work(mut self, run: &Run, next: &AtomicU64, findings: &Mutex<Vec<Finding>>) -> Vec<Counts> {
        loop {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= run.inputs {
                return self.counts;
            }
            if first > 0 && first * REPORTS / run.inputs != (first - CHUNK) * REPORTS / run.inputs {
                (run.progress)(first);
            }
            let mut random = Random::new(run.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(first));
            for _ in first..(first + CHUNK).min(run.inputs) {
                self.one(&mut random, findings);
            }
        }
    }

    fn one(&mut self, random: &mut Random, findings: &Mutex<Vec<Finding>>) {
        let n = self.wheel[below(random, self.wheel.len())];
        let corpus = &self.corpora[n];
        let document = &corpus[below(random, corpus.len())];
        damage(random, document, corpus, &mut self.input);
        let began = Instant::now();
        let (decoder, input) = (&mut self.decoders[n], &self.input);
        let done = catch_unwind(AssertUnwindSafe(|| decoder(input)));
        let counts = &mut self.counts[n];
        counts.slowest = counts.slowest.max(began.elapsed());
        counts.inputs += 1;
        match done {
            Ok(read) => counts.read += u64::from(read),
            Err(panic) => {
                counts.panics += 1;
                self.keep(n, panic.as_ref(), findings);
                // The panic may have left it in an inconsistent state.
                self.decoders[n] = (self.targets[n].decoder)();
            }
        }
    }

    fn keep(&self, n: usize, panic: &dyn Any, findings: &Mutex<Vec<Finding>>) {
        let target = self.targets[n].name;
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let finding = Finding {
            target,
            panic: said.unwrap_or("a panic without a message").to_owned(),
            input: self.input.clone(),
        };
        let mut findings = findings.lock().unwrap_or_else(PoisonError::into_inner);
        if findings.iter().filter(|known| known.target == target).count() < MAX_FINDINGS {
            findings.push(finding);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panics: u64 = self.counts.iter().map(|(_, counts)| counts.panics).sum();
        let seconds = self.took.as_secs_f64();
        writeln!(f, "{} inputs in {seconds:.1} s: {panics} panics", self.inputs())?;
        writeln!(f, "  {:<24}{:>12}{:>12}{:>8}{:>12}", "decoder", "inputs", "read", "panics", "slowest")?;
        for (name, Counts { inputs, read, panics, slowest }) in &self.counts {
            let slowest = format!("{:.1} ms", slowest.as_secs_f64() * 1e3);
            writeln!(f, "  {name:<24}{inputs:>12}{read:>12}{panics:>8}{slowest:>12}")?;
        }
        self.findings.iter().try_for_each(|finding| writeln!(f, "  {finding}"))
    }
}
