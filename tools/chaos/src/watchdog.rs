//! Watches the machine of the run. A time in which the machine itself stood still says nothing about Redial.
//!
//! A thread sleeps again and again, and measures how late it wakes: by the monotonic clock, and by the time of day, which
//! goes on while a machine is suspended. Once a second it reads how much time other machines of the same host took
//! (`steal` in /proc/stat). How long anything here waited for a processor (/proc/pressure/cpu) is only shown: under
//! a load like this something always waits. Where such a file is missing, the sleeping remains.

mod proc;
mod windows;

use std::{
    fs,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use chrono::Utc;

use proc::{Ticks, pressure, ticks};
pub(crate) use windows::{Standstills, Window};

/// One sleep.
const NAP: Duration = Duration::from_millis(50);
/// Waking up so much too late is a standstill: a quarter of the shortest recovery target (1 s), so that what is not
/// noticed cannot decide whether a target is met, and many times what a busy machine is late (a few ms: who sleeps most of
/// the time runs first).
const LATE: Duration = Duration::from_millis(250);
/// Between two looks at the counters of the system.
const LOOK: Duration = Duration::from_secs(1);

/// Watches until it is dropped or asked for what it saw.
pub(crate) struct Watchdog {
    seen: Arc<Mutex<Standstills>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Begins to watch.
    pub(crate) fn start() -> Self {
        let (seen, over) = (Arc::new(Mutex::new(Standstills::since(Utc::now()))), Arc::<AtomicBool>::default());
        let (shared, stop) = (Arc::clone(&seen), Arc::clone(&over));
        let watch = move || watch(&shared, &stop);
        // Without the thread nothing is excused.
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(watch).ok();
        Self { seen, over, thread }
    }

    /// What it saw so far.
    pub(crate) fn seen(&self) -> Standstills {
        lock(&self.seen).clone().until(Utc::now())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

fn watch(seen: &Mutex<Standstills>, over: &AtomicBool) {
    let (begin, mut last) = (Look::now(), Look::now());
    while !over.load(Ordering::Relaxed) {
        let (slept, day) = (Instant::now(), Utc::now());
        thread::sleep(NAP);
        let woken = Utc::now();
        let time = slept.elapsed().max((woken - day).to_std().unwrap_or_default());
        let late = time.saturating_sub(NAP);
        if late >= LATE {
            lock(seen).add(Window { from: woken - late, until: woken });
        }
        if last.at.elapsed() >= LOOK {
            let look = Look::now();
            take(&mut lock(seen), &begin, &last, &look);
            last = look;
        }
    }
}

/// The counters of the system at a time.
struct Look {
    at: Instant,
    day: chrono::DateTime<Utc>,
    ticks: Option<Ticks>,
    pressure: Option<Duration>,
}

impl Look {
    fn now() -> Self {
        let read = |file: &str| fs::read_to_string(file).ok();
        Self {
            at: Instant::now(),
            day: Utc::now(),
            ticks: read("/proc/stat").as_deref().and_then(ticks),
            pressure: read("/proc/pressure/cpu").as_deref().and_then(pressure),
        }
    }
}

fn take(seen: &mut Standstills, begin: &Look, last: &Look, look: &Look) {
    if let (Some(before), Some(now)) = (last.ticks, look.ticks)
        && now.mostly_stolen_since(before)
    {
        seen.add(Window { from: last.day, until: look.day });
    }
    seen.stolen = begin.ticks.zip(look.ticks).map(|(first, now)| now.stolen_since(first));
    let waited = begin.pressure.zip(look.pressure).map(|(first, now)| now.saturating_sub(first));
    seen.waited = waited.map(|waited| waited.as_secs_f64() / (look.at - begin.at).as_secs_f64());
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
