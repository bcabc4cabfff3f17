//! How the machine did.

use serde::Serialize;

use super::ms::ms;
use crate::watchdog::Standstills;

/// When the machine of the run stood still.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) standstills: usize,
    pub(crate) total_ms: u64,
    pub(crate) longest_ms: u64,
    /// The part of the run.
    pub(crate) part: f64,
    /// Longer than a run may that proves something.
    pub(crate) stood_still_too_long: bool,
    /// The part of the processors' time that other machines took; `None` if the system does not say.
    pub(crate) stolen: Option<f64>,
    /// The part of the run in which something waited for a processor; `None` if the system does not say.
    pub(crate) waited: Option<f64>,
    /// Each standstill: when it began, in seconds since the start of the watch, and its length.
    pub(crate) windows: Vec<(f64, u64)>,
}

impl Machine {
    pub(super) fn of(seen: &Standstills) -> Self {
        let windows = seen.windows().iter();
        Self {
            standstills: seen.windows().len(),
            total_ms: ms(seen.total()),
            longest_ms: ms(seen.longest()),
            part: seen.part(),
            stood_still_too_long: seen.are_too_many(),
            stolen: seen.stolen,
            waited: seen.waited,
            windows: windows.map(|one| ((one.from - seen.from()).as_seconds_f64(), ms(one.time()))).collect(),
        }
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let known = |part: Option<f64>| part.map_or("not known".to_owned(), percent);
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let seconds = |ms: u64| format!("{:.2} s", ms as f64 / 1000.0);
        let (total, longest) = (seconds(self.total_ms), seconds(self.longest_ms));
        let part = percent(self.part);
        let stood = format!(
            "the machine stood still {} times, {total} in all ({part} of the run), at most {longest}",
            self.standstills
        );
        let other =
            format!("stolen by other machines: {}; waited for a processor: {}", known(self.stolen), known(self.waited));
        let verdict = if self.stood_still_too_long {
            "\nTHIS RUN PROVES NOTHING: the machine stood still for more than 10 % of it"
        } else {
            ""
        };
        format!("{stood}\n{other}{verdict}")
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;
    use crate::watchdog::Window;

    fn line(until: i64) -> String {
        let at = |ms| DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms);
        let window = |(from, until)| Window { from: at(from), until: at(until) };
        let seen = Standstills::of(at(0), at(until), [(1_000, 1_300), (5_000, 6_000)].map(window));
        Machine::of(&seen).line()
    }

    #[test]
    fn standstills_are_told() {
        let text = line(100_000);
        let wanted = "the machine stood still 2 times, 1.30 s in all (1.3 % of the run), at most 1.00 s\n\
                      stolen by other machines: not known; waited for a processor: not known";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_run_that_proves_nothing_says_so() {
        assert!(line(12_999).contains("THIS RUN PROVES NOTHING"));
        assert!(!line(13_000).contains("PROVES NOTHING"));
    }
}
