//! Recovery targets, and what was measured.

use std::time::Duration;

use redial_testkit::{AttemptFacts, Invariant};
use serde::Serialize;

use super::ms::ms;
use crate::{
    ended::{Ended, LEASE},
    faults::{Measured, Recovery, Target},
    load::FRAGILE,
    watchdog::Standstills,
};

/// A target.
#[derive(Debug, Serialize)]
pub(crate) struct TargetRow {
    pub(crate) target: String,
    pub(crate) limit: String,
    pub(crate) measured: String,
    /// From so many faults, calls or attempts.
    pub(crate) out_of: usize,
    /// `None`: this run says nothing about it.
    pub(crate) met: Option<bool>,
}

pub(super) fn rows(ended: &Ended<'_>) -> Vec<TargetRow> {
    let second = Duration::from_secs(1);
    let times = [
        (Target::WorkerKilled, "worker killed → its calls run again", LEASE + 2 * second),
        (Target::NatsBack, "NATS back → a call completes", 3 * second),
        (Target::LeaderKilled, "last leader killed → a call completes", 10 * second),
        (Target::StoreWiped, "NATS back without its store → a call completes", 5 * second),
        (Target::PostgresBack, "Postgres accepts connections → a submission is accepted", second),
        (Target::Promoted, "standby promoted → a submission is accepted", 2 * second),
        (Target::HoleHealed, "black hole healed → both ends hear each other", 10 * second),
        (Target::ToolBack, "removed tool registered again → all its waiting calls run", 2 * second),
        (Target::PoolBack, "pool has a worker again → all its waiting calls run", 2 * second),
        (Target::HalfServed, "half of a pool lacks a tool → its calls run on the others", 2 * second),
        (Target::EveryoneWorks, "half of a pool lacks a tool → each worker completes a call", 5 * second),
        (Target::OutageOver, "tool back after a minute → all waiting calls have ended", 60 * second),
        (Target::BatchRejected, "1,000 entries rejected → the submission behind them has ended", 3 * second),
        (Target::HostileMessages, "hostile messages → the submission behind them has ended", 3 * second),
        (Target::HostileClients, "hostile clients → the submission behind them has ended", 3 * second),
        (Target::GiantConversation, "a conversation of 10 MB → a small task ends meanwhile", 5 * second),
        (Target::OthersGoOn, "misuse of one → longest pause of the others", 2 * second),
    ];
    let all = || ended.run.steps.iter().flat_map(|(_, outcome)| &outcome.measured);
    let times = times.map(|(target, name, limit)| {
        time(all().filter(|measured| measured.target == target), ended.run.machine, name, limit)
    });
    times.into_iter().chain([wasted_attempts(ended), retries(ended), rolling(ended)]).collect()
}

/// The worst of all recoveries that count. Those during which the machine stood still are shown.
fn time<'a>(
    measured: impl Iterator<Item = &'a Measured>,
    machine: &Standstills,
    name: &str,
    limit: Duration,
) -> TargetRow {
    let (excused, counted): (Vec<&Measured>, Vec<&Measured>) = measured.partition(|one| one.is_excused(machine));
    let worst = worst(&counted);
    let mut shown = worst.map_or("not measured".to_owned(), show);
    if let Some(excused) = self::worst(&excused) {
        shown += &format!(" ({} while the machine stood still)", show(excused));
    }
    TargetRow {
        target: name.to_owned(),
        limit: format!("≤ {} s", ms(limit) / 1000),
        measured: shown,
        out_of: counted.len(),
        met: worst.map(|worst| matches!(worst, Recovery::After(time) if time <= limit)),
    }
}

fn worst(measured: &[&Measured]) -> Option<Recovery> {
    let longest = |recovery: &Recovery| match recovery {
        Recovery::NotMeasured => Duration::ZERO,
        Recovery::After(time) => *time,
        Recovery::Never => Duration::MAX,
    };
    measured.iter().map(|one| one.recovery).max_by_key(longest)
}

fn show(recovery: Recovery) -> String {
    match recovery {
        Recovery::NotMeasured => "not measured".to_owned(),
        Recovery::After(time) => format!("{:.2} s", time.as_secs_f64()),
        Recovery::Never => "no recovery".to_owned(),
    }
}

fn wasted_attempts(ended: &Ended<'_>) -> TargetRow {
    let wasted_attempts =
        ended.violations.iter().filter(|violation| violation.invariant == Invariant::NoAttemptLostToOutage).count();
    TargetRow {
        target: "attempts lost to outages".to_owned(),
        limit: "0".to_owned(),
        measured: wasted_attempts.to_string(),
        out_of: undisturbed(ended).count(),
        met: Some(wasted_attempts == 0),
    }
}

/// Attempts of workers into which no fault was injected during the attempt.
fn undisturbed<'a>(ended: &'a Ended<'_>) -> impl Iterator<Item = &'a AttemptFacts> {
    let disturbed = &ended.claims.disturbed;
    ended.evidence.attempts().filter(move |attempt| !disturbed.iter().any(|disturbance| disturbance.touches(attempt)))
}

/// How much an outage of a tool is amplified.
fn retries(ended: &Ended<'_>) -> TargetRow {
    let outages = &ended.run.injector.tool_outages;
    let attempts = ended.evidence.calls.values().filter(|call| call.tool == FRAGILE).flat_map(|call| &call.attempts);
    let during = |started| outages.iter().any(|(from, until)| (*from..*until).contains(&started));
    let numbers: Vec<u32> =
        attempts.filter(|attempt| during(attempt.started_at)).map(|attempt| attempt.attempt).collect();
    let first = numbers.iter().filter(|number| **number == 1).count();
    let retries = numbers.len() - first;
    TargetRow {
        target: "tool fails at 100 %: retries for each first try".to_owned(),
        limit: "≤ 1.1".to_owned(),
        measured: if first == 0 {
            "not measured".to_owned()
        } else {
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let ratio = retries as f64 / first as f64;
            format!("{ratio:.2}")
        },
        out_of: first,
        met: (first > 0).then(|| retries * 10 <= first * 11),
    }
}

/// What was lost or failed although everybody was asked nicely.
fn rolling(ended: &Ended<'_>) -> TargetRow {
    let windows = &ended.run.injector.rolling;
    let during = |attempt: &AttemptFacts| {
        windows.iter().any(|(from, until)| attempt.ended_at >= *from && attempt.started_at <= *until)
    };
    let attempts = || undisturbed(ended).filter(|attempt| during(attempt));
    let lost = attempts().filter(|attempt| attempt.class.as_deref() == Some("lost")).count();
    let unexpected = ended.unexpected.iter().filter_map(|(call, _)| ended.evidence.calls.get(call));
    let failed = unexpected.filter(|call| call.attempts.iter().any(during)).count();
    TargetRow {
        target: "rolling restart of everything: attempts lost, calls failed".to_owned(),
        limit: "0, 0".to_owned(),
        measured: if windows.is_empty() { "not measured".to_owned() } else { format!("{lost}, {failed}") },
        out_of: attempts().count(),
        met: (!windows.is_empty()).then_some(lost + failed == 0),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;
    use crate::watchdog::Window;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn row(measured: &[(u64, i64)]) -> TargetRow {
        let one = |(seconds, until): &(u64, i64)| Measured {
            target: Target::NatsBack,
            recovery: if *seconds == 0 { Recovery::Never } else { Recovery::After(Duration::from_secs(*seconds)) },
            until: at(*until),
        };
        let measured: Vec<Measured> = measured.iter().map(one).collect();
        let machine = Standstills::of(at(0), at(1_000), [Window { from: at(100), until: at(102) }]);
        time(measured.iter(), &machine, "NATS", Duration::from_secs(3))
    }

    #[test]
    fn the_worst_recovery_counts() {
        let found = row(&[(1, 10), (3, 20), (2, 30)]);
        assert_eq!((found.measured.as_str(), found.out_of, found.met), ("3.00 s", 3, Some(true)));
        let found = row(&[(1, 10), (4, 20)]);
        assert_eq!((found.measured.as_str(), found.met), ("4.00 s", Some(false)));
        let found = row(&[(1, 10), (0, 120), (4, 20)]);
        assert_eq!((found.measured.as_str(), found.met), ("no recovery", Some(false)));
        let found = row(&[]);
        assert_eq!((found.measured.as_str(), found.met), ("not measured", None));
    }

    #[test]
    fn a_recovery_across_a_standstill_is_shown_and_does_not_count() {
        let found = row(&[(1, 10), (5, 103)]);
        let wanted = ("1.00 s (5.00 s while the machine stood still)", 1, Some(true));
        assert_eq!((found.measured.as_str(), found.out_of, found.met), wanted);
        let found = row(&[(5, 103)]);
        let wanted = ("not measured (5.00 s while the machine stood still)", 0, None);
        assert_eq!((found.measured.as_str(), found.out_of, found.met), wanted);
    }
}
