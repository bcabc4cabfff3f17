//! A wrong clock for a worker: a library in front of the C library's that shifts the time of day. The monotonic clock is
//! unchanged: leases are counted with it.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
};

use redial_testkit::unique_path;

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t offset(void) {
    const char *text = getenv("REDIAL_CHAOS_CLOCK");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"#;

/// A clock that is wrong by some seconds.
#[derive(Clone, Debug)]
pub(crate) struct WrongClock {
    library: PathBuf,
    seconds: i64,
}

impl WrongClock {
    /// Needs a C compiler and a system that can preload libraries; `None` where these are missing.
    pub(crate) fn make(seconds: i64) -> Option<Self> {
        let (source, library) = (unique_path("clock").with_extension("c"), unique_path("clock").with_extension("so"));
        fs::write(&source, SOURCE).ok()?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        compiler.stdout(Stdio::null()).stderr(Stdio::null()).status().ok().filter(ExitStatus::success)?;
        let clock = Self { library, seconds };
        clock.works().then_some(clock)
    }

    /// Sets the environment that gives a process this clock.
    pub(crate) fn give(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("REDIAL_CHAOS_CLOCK", self.seconds.to_string());
    }

    fn works(&self) -> bool {
        let seconds = |command: &mut Command| -> Option<i64> {
            let output = command.args(["+%s"]).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        let (mut right, mut wrong) = (Command::new("date"), Command::new("date"));
        self.give(&mut wrong);
        let both = seconds(&mut wrong).zip(seconds(&mut right));
        both.is_some_and(|(wrong, right)| (wrong - right - self.seconds).abs() < 60)
    }
}
