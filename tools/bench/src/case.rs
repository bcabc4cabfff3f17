//! The cases.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One question that the benchmark answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    /// Throughput of calls: one dispatcher, one worker.
    A,
    /// The same with two dispatchers, and two or four workers.
    B,
    /// Latency of calls one after another.
    C,
    /// A backlog that was there before the worker.
    D,
    /// The throughput of (a) with a long history in the tables.
    E,
    /// Calls that take a second, all in flight on one worker.
    F,
    /// Tasks of five turns with a scripted model.
    G,
    /// What the calls of (a) cost: processor time, write-ahead log, disk.
    H,
    /// The throughput of (a) beside calls that wait for a tool that is down.
    I,
    /// The latency of calls of one pool beside the backlog of another.
    J,
    /// Throughput and latency beside a million calls that nobody can run. It takes minutes: only if it is asked for.
    K,
    /// The same load over HTTP and over NATS.
    L,
    /// The memory of a worker whose HTTP calls all wait for their answers.
    M,
}

impl Case {
    pub(crate) const ALL: [Self; 13] = [
        Self::A,
        Self::B,
        Self::C,
        Self::D,
        Self::E,
        Self::F,
        Self::G,
        Self::H,
        Self::I,
        Self::J,
        Self::K,
        Self::L,
        Self::M,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::E => "e",
            Self::F => "f",
            Self::G => "g",
            Self::H => "h",
            Self::I => "i",
            Self::J => "j",
            Self::K => "k",
            Self::L => "l",
            Self::M => "m",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || format!("{text:?} is not a case; allowed: {}", Self::ALL.map(Self::as_str).join(", "));
        Self::ALL.into_iter().find(|case| case.as_str() == text).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_by_their_letters() {
        for case in Case::ALL {
            assert_eq!(case.as_str().parse(), Ok(case));
        }
        assert_eq!(
            "x".parse::<Case>(),
            Err("\"x\" is not a case; allowed: a, b, c, d, e, f, g, h, i, j, k, l, m".to_owned())
        );
    }
}
