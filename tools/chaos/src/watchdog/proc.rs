//! Reads what the kernel counts.

use std::time::Duration;

/// Time of all processors, in ticks, since the system was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// The part of the time since then that went to other machines of the host.
    pub(super) fn stolen_since(self, before: Self) -> f64 {
        let (all, stolen) = (self.all.saturating_sub(before.all), self.stolen.saturating_sub(before.stolen));
        #[expect(clippy::cast_precision_loss, reason = "a part, near enough")]
        let part = stolen as f64 / all.max(1) as f64;
        part
    }

    /// At least half of it.
    pub(super) fn mostly_stolen_since(self, before: Self) -> bool {
        self.stolen_since(before) >= 0.5
    }
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What follows is contained in them.
pub(super) fn ticks(stat: &str) -> Option<Ticks> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    let numbers: Vec<u64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Ticks { all: numbers.iter().sum(), stolen: *numbers.get(7)? })
}

/// How long something has waited for a processor so far: `total` of the line `some`, in µs.
pub(super) fn pressure(text: &str) -> Option<Duration> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let before = ticks("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, Ticks { all: 1_000, stolen: 40 });
        let later = Ticks { all: 1_200, stolen: 139 };
        assert!((later.stolen_since(before) - 0.495).abs() < 1e-9 && !later.mostly_stolen_since(before));
        assert!(Ticks { all: 1_200, stolen: 140 }.mostly_stolen_since(before));
        assert!(before.stolen_since(before).abs() < 1e-9);
        let text = "some avg10=1.00 avg60=2.00 avg300=3.00 total=1500000\nfull avg10=0.00 total=3\n";
        assert_eq!(pressure(text), Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        assert_eq!([ticks(""), ticks("cpu  1 2 3\n"), ticks("cpu  a b c d e f g h\n")], [None; 3]);
        assert_eq!([pressure(""), pressure("some avg10=0\n")], [None; 2]);
    }
}
