//! Recovery targets, and what was measured.

use std::time::Duration;

use redial_testkit::{AttemptFacts, Invariant};
use serde::Serialize;

use super::ms::ms;
use crate::{
    ended::{Ended, LEASE},
    faults::{Recovery, Target},
    load::FRAGILE,
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
        (Target::StoreWiped, "NATS back without its store → a call completes", 5 * second),
        (Target::PostgresBack, "Postgres accepts connections → a submission is accepted", second),
        (Target::HoleHealed, "black hole healed → both ends hear each other", 10 * second),
    ];
    let times = times.map(|(target, name, limit)| time(ended, target, name, limit));
    times.into_iter().chain([wasted_attempts(ended), retries(ended), rolling(ended)]).collect()
}

/// The worst of all recoveries that count.
fn time(ended: &Ended<'_>, target: Target, name: &str, limit: Duration) -> TargetRow {
    let outcomes = ended.run.steps.iter().filter(|(_, outcome)| outcome.target == Some(target));
    let recoveries: Vec<Recovery> = outcomes.map(|(_, outcome)| outcome.recovery).collect();
    let times = recoveries.iter().filter_map(|recovery| match recovery {
        Recovery::After(time) => Some(*time),
        _ => None,
    });
    let never = recoveries.contains(&Recovery::Never);
    let worst = times.max();
    TargetRow {
        target: name.to_owned(),
        limit: format!("≤ {} s", ms(limit) / 1000),
        measured: match worst {
            _ if never => "no recovery".to_owned(),
            Some(worst) => format!("{:.2} s", worst.as_secs_f64()),
            None => "not measured".to_owned(),
        },
        out_of: recoveries.len(),
        met: if never { Some(false) } else { worst.map(|worst| worst <= limit) },
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
    let disturbed = &ended.run.injector.fixture.disturbed;
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
