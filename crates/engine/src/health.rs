//! The health of a tool: how many retries it gets, so that retrying does not amplify an outage, and a tool that has
//! recovered gets its waiting calls back quickly, but not all at once.
//!
//! A success earns a part of a retry token, a retry costs one. A full bucket lets a burst of retries through; after that
//! a tool that only fails gets a few retries per second, its probes: how many of each is the tool's [`RetryBudget`]. Once
//! it succeeds while retries wait, the rate doubles each second up to what the tool did before (a slow start), then grows by a tenth; it
//! halves while failures prevail. A retry without a token is not lost and costs no attempt: it waits in the backlog.
//!
//! All dispatchers add to the same counts on record, and whoever finds them a second old draws the conclusions. So it
//! does not matter how many dispatchers there are and how often they report.

use std::time::Duration;

use chrono::TimeDelta;
use redial_proto::{ErrorClass, RetryBudget};
use redial_records::{Time, ToolHealth};

/// A tool that did less than this per second before an outage still gets its slow start up to here.
const LEAST_USUAL_RATE: f64 = 10.0;
/// The rate of retries grows up to so many times the usual one, or what a tool gets whose usual rate is 100.
const MOST: f64 = 10.0;
const MOST_OF_A_SLOW_TOOL: f64 = 1_000.0;
/// A usual rate that is not reached any more halves in this time, in seconds.
const HALF_LIFE: f64 = 600.0;
/// Rates and states change at most this often: what all dispatchers observed since then counts together.
const STEP: TimeDelta = TimeDelta::seconds(1);
/// Usual rates are learned from at least this long: every dispatcher says what it saw several times meanwhile.
const LEARNED_FROM: TimeDelta = TimeDelta::seconds(30);
/// A tool counts as recovering at least this long after an outage: the retries that wait for their time come later.
const RECOVERED_AFTER: TimeDelta = TimeDelta::minutes(10);

/// What a dispatcher observed of a tool since it last said so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    pub successes: u32,
    /// Attempts that failed because the service was not there: [`is_outage`].
    pub failures: u32,
    /// How long ago the first failure after its last success was, whether or not it was reported before.
    pub failing_for: Option<Duration>,
    /// Tokens that were taken, and used for no retry.
    pub unused_tokens: u32,
}

/// True if an attempt that fails so says that the service behind the tool is not there.
pub const fn is_outage(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Unavailable | ErrorClass::RateLimited | ErrorClass::Timeout)
}

/// Makes the health of a tool of which nothing is on record.
pub fn fresh(tool: impl Into<String>, budget: &RetryBudget, now: Time) -> ToolHealth {
    ToolHealth {
        tool: tool.into(),
        tokens: budget.burst,
        per_second: budget.per_second,
        usual_rate: 0.0,
        successes: 0.0,
        failures: 0.0,
        failing_since: None,
        recovering_since: None,
        stepped_at: now,
        learned: 0.0,
        learned_since: now,
        updated_at: now,
    }
}

/// Returns the health after what was observed. `waiting`: retries of the tool wait in the backlog.
#[must_use]
pub fn after(health: &ToolHealth, budget: &RetryBudget, observed: Observed, waiting: bool, now: Time) -> ToolHealth {
    // The database's clock may jump back.
    let seconds = (now - health.updated_at).as_seconds_f64().max(0.0);
    let mut next = ToolHealth {
        successes: health.successes + f64::from(observed.successes),
        failures: health.failures + f64::from(observed.failures),
        stepped_at: health.stepped_at.min(now),
        learned: health.learned + f64::from(observed.successes),
        learned_since: health.learned_since.min(now),
        updated_at: now,
        ..health.clone()
    };
    if next.successes + next.failures > 0.0 && now - next.stepped_at >= STEP {
        step(&mut next, budget, observed.failing_for, waiting, now);
    }
    if !waiting {
        next.per_second = budget.per_second;
    }
    let has_its_rate = !waiting || next.per_second >= next.usual_rate.max(LEAST_USUAL_RATE);
    if has_its_rate && next.recovering_since.is_some_and(|since| now - since > RECOVERED_AFTER) {
        next.recovering_since = None;
    }
    learn(&mut next, now);
    let earned = f64::from(observed.successes) * budget.per_success
        + seconds * next.per_second
        + f64::from(observed.unused_tokens);
    next.tokens = (health.tokens + earned).min(budget.burst.max(next.per_second));
    next
}

/// Takes tokens for up to so many retries; returns for how many.
pub fn take(health: &mut ToolHealth, most: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ tokens, and a cast saturates")]
    let tokens = health.tokens.max(0.0) as u32;
    let allowed = tokens.min(most);
    health.tokens -= f64::from(allowed);
    allowed
}

/// Draws the conclusions from what was counted since the last step.
fn step(health: &mut ToolHealth, budget: &RetryBudget, failing_for: Option<Duration>, waiting: bool, now: Time) {
    let (successes, failures) = (std::mem::take(&mut health.successes), std::mem::take(&mut health.failures));
    let (stepped_at, span) = (health.stepped_at, now - health.stepped_at);
    health.stepped_at = now;
    let falters = health.recovering_since.is_some() && health.per_second > budget.per_second;
    if successes > 0.0 {
        // Retries may wait for their time still, and come later.
        if health.failing_since.take().is_some() {
            health.recovering_since = Some(now - span.min(STEP));
        }
    } else if !falters {
        let since = failing_for.and_then(|ago| TimeDelta::from_std(ago).ok()).map_or(now, |ago| now - ago);
        // Another dispatcher may have seen a success meanwhile, in the last step at the latest.
        health.failing_since.get_or_insert(since.max(stepped_at).min(now));
        health.recovering_since = None;
    }
    if health.failing_since.is_some() {
        health.per_second = budget.per_second;
    } else if waiting {
        health.per_second = rate_after(health, budget, failures > successes);
    }
}

/// Returns the tokens earned per second from now on.
fn rate_after(health: &ToolHealth, budget: &RetryBudget, failures_prevail: bool) -> f64 {
    let (rate, usual) = (health.per_second, health.usual_rate.max(LEAST_USUAL_RATE));
    let next = match rate {
        _ if failures_prevail => rate.min(usual) / 2.0,
        rate if rate < usual => (rate * 2.0).min(usual),
        rate => rate * 1.1,
    };
    next.clamp(budget.per_second, (usual * MOST).max(MOST_OF_A_SLOW_TOOL).max(budget.per_second))
}

/// Learns the usual rate, while the tool neither fails nor recovers.
fn learn(health: &mut ToolHealth, now: Time) {
    let is_usual = health.failing_since.is_none() && health.recovering_since.is_none();
    let span = now - health.learned_since;
    if is_usual && span < LEARNED_FROM {
        return;
    }
    let successes = std::mem::take(&mut health.learned);
    health.learned_since = now;
    if is_usual {
        let (usual, seconds) = (health.usual_rate, span.as_seconds_f64());
        let rate = successes / seconds;
        health.usual_rate = if rate > usual {
            f64::midpoint(usual, rate)
        } else {
            rate + (usual - rate) * 0.5_f64.powf(seconds / HALF_LIFE)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: RetryBudget = RetryBudget { burst: 100.0, per_success: 0.1, per_second: 1.0 };

    fn new(tool: &str) -> ToolHealth {
        fresh(tool, &BUDGET, start())
    }

    fn start() -> Time {
        Time::default()
    }

    fn observed(successes: u32, failures: u32) -> Observed {
        let failing_for = (failures > 0).then_some(Duration::from_millis(500));
        Observed { successes, failures, failing_for, ..Observed::default() }
    }

    fn later(health: &ToolHealth, ms: i64, seen: Observed, waiting: bool) -> ToolHealth {
        after(health, &BUDGET, seen, waiting, health.updated_at + TimeDelta::milliseconds(ms))
    }

    #[test]
    fn the_budget_of_a_tool_decides_how_many_retries_there_are() {
        let budget = RetryBudget { burst: 5.0, per_success: 0.5, per_second: 0.2 };
        let mut health = fresh("look", &budget, start());
        assert_eq!(take(&mut health, 1_000), 5, "an outage gets a burst, and then probes");
        let mut probes = 0;
        for second in 1..=60 {
            health = after(&health, &budget, observed(0, 1), true, start() + TimeDelta::seconds(second));
            probes += take(&mut health, 1_000);
        }
        assert_eq!(probes, 12, "a fifth of a retry each second");
        let late = start() + TimeDelta::minutes(1);
        health = after(&ToolHealth { tokens: 0.0, ..health }, &budget, observed(4, 0), false, late);
        assert!((health.tokens - 2.0).abs() < 1e-9, "{health:?}");
    }

    #[test]
    fn successes_and_unused_tokens_count_up_to_the_capacity_and_a_clock_that_jumps_back_takes_none() {
        let health = later(&ToolHealth { tokens: 0.0, ..new("look") }, 0, observed(50, 0), false);
        let full = later(&health, 0, observed(u32::MAX, 0), false);
        let back = after(&health, &BUDGET, Observed::default(), false, start() - TimeDelta::hours(1));
        let unused = later(&health, 0, Observed { unused_tokens: 3, ..Observed::default() }, true);
        for (found, tokens) in [(&health, 5.0), (&full, BUDGET.burst), (&back, 5.0), (&unused, 8.0)] {
            assert!((found.tokens - tokens).abs() < 1e-9, "{found:?}");
        }
    }

    /// 50,000 retries wait for a tool that did 1,000 calls a second: how many seconds until all have run.
    #[test]
    fn a_tool_that_recovers_gets_its_rate_back_within_seconds() {
        let mut health = new("look");
        for _ in 0..300 {
            health = later(&health, 1_000, observed(1_000, 0), false);
        }
        assert!(health.usual_rate > 900.0, "{}", health.usual_rate);
        let mut ran = take(&mut health, 1_000);
        for _ in 0..3_600 {
            health = later(&health, 1_000, observed(0, ran), true);
            ran = take(&mut health, 1_000);
        }
        assert!((health.per_second - 1.0).abs() < 1e-9 && health.usual_rate > 900.0);
        let mut waiting = 50_000_u32;
        let mut seconds = 0;
        while waiting > 0 {
            seconds += 1;
            health = later(&health, 1_000, observed(ran, 0), true);
            ran = take(&mut health, waiting);
            waiting -= ran;
            assert!(ran <= 1_000 || seconds > 10, "{ran} in second {seconds}");
        }
        assert!(seconds < 60, "{seconds}");
        assert!(health.recovering_since.is_some() && health.failing_since.is_none());
        health = later(&health, 1_000, observed(ran, 0), false);
        assert!(health.recovering_since.is_some() && (health.per_second - 1.0).abs() < 1e-9);
        health = later(&health, 600_000, observed(ran, 0), false);
        assert_eq!(health.recovering_since, None);
    }

    /// Returns how long until a tool that did 1,000 calls a second gets as many retries, if so many reports a second
    /// come in.
    fn seconds_to_the_usual_rate(reports: i64, each: impl Fn(i64) -> Observed) -> i64 {
        let mut health = ToolHealth { usual_rate: 1_000.0, failing_since: Some(start()), ..new("look") };
        for n in 1.. {
            health = later(&health, 1_000 / reports, each(n), true);
            if health.per_second >= 1_000.0 {
                return n / reports;
            }
        }
        unreachable!("the loop has no end")
    }

    #[test]
    fn it_does_not_matter_how_often_dispatchers_report() {
        let whole = seconds_to_the_usual_rate(1, |_| observed(100, 0));
        assert_eq!(whole, 10, "2^10 > 1,000");
        // Reports without a success, and a failure now and then, with each dispatcher's own timing.
        for reports in [2, 10, 50, 125] {
            let found = seconds_to_the_usual_rate(reports, |n| observed(u32::from(n % reports == 1), 0));
            assert!((whole..=whole + 1).contains(&found), "{found} s with {reports} reports");
            let found = seconds_to_the_usual_rate(reports, |n| observed(u32::from(n % 2 == 0), u32::from(n % 5 == 1)));
            assert!((whole..=whole + 1).contains(&found), "{found} s with {reports} reports and failures");
        }
    }

    #[test]
    fn the_usual_rate_is_that_of_all_dispatchers() {
        let mut health = new("look");
        // One reports 1.2 s after the other, each what it saw in 5 s.
        for _ in 0..100 {
            health = later(&health, 3_800, observed(500, 0), false);
            health = later(&health, 1_200, observed(500, 0), false);
        }
        assert!((190.0..=240.0).contains(&health.usual_rate), "{}", health.usual_rate);
    }

    #[test]
    fn a_rate_that_the_tool_cannot_bear_halves_and_only_at_the_end_it_fails_again() {
        let recovering =
            ToolHealth { per_second: 64.0, usual_rate: 1_000.0, recovering_since: Some(start()), ..new("look") };
        assert!((later(&recovering, 1_000, observed(10, 20), true).per_second - 32.0).abs() < 1e-9);
        let mut down = recovering;
        for rate in [32.0, 16.0, 8.0, 4.0, 2.0, 1.0] {
            assert_eq!(down.failing_since, None);
            down = later(&down, 1_000, observed(0, 20), true);
            assert!((down.per_second - rate).abs() < 1e-9, "{}", down.per_second);
        }
        down = later(&down, 1_000, observed(0, 1), true);
        assert!(down.failing_since.is_some() && down.recovering_since.is_none());
    }

    #[test]
    fn a_tool_fails_since_its_first_failure_as_far_as_no_success_is_known() {
        let failure = |failing_for| Observed { failures: 1, failing_for: Some(failing_for), ..Observed::default() };
        // Reported twice before a second was over: the first failure counts.
        let first = later(&new("look"), 900, failure(Duration::from_millis(200)), false);
        assert_eq!(first.failing_since, None);
        let second = later(&first, 500, failure(Duration::from_millis(700)), false);
        assert_eq!(second.failing_since, Some(start() + TimeDelta::milliseconds(700)));
        // Another dispatcher saw a success a second ago; this one did not.
        let seen = later(&new("look"), 5_000, observed(1, 0), false);
        let failed = later(&seen, 1_000, failure(Duration::from_mins(1)), false);
        assert_eq!(failed.failing_since, Some(seen.stepped_at));
    }

    #[test]
    fn conclusions_are_drawn_when_nothing_more_is_observed() {
        let failing = later(&new("look"), 1_000, observed(0, 1), true);
        let succeeded = later(&failing, 500, observed(1, 0), false);
        assert!(succeeded.failing_since.is_some(), "judged once a second");
        let judged = later(&succeeded, 500, Observed::default(), false);
        assert!(judged.failing_since.is_none() && judged.recovering_since.is_some());
    }

    #[test]
    fn a_clock_that_jumps_stops_no_probes() {
        let down = ToolHealth { tokens: 0.0, failing_since: Some(start()), ..new("look") };
        let ahead = later(&down, 3_600_000, Observed::default(), true);
        let back = after(&ahead, &BUDGET, Observed::default(), true, start() + TimeDelta::seconds(1));
        let mut spent = ToolHealth { tokens: 0.0, ..back };
        spent = later(&spent, 1_000, observed(0, 1), true);
        assert!((spent.tokens - 1.0).abs() < 1e-9 && spent.failures == 0.0, "{spent:?}");
    }

    #[test]
    fn retries_that_always_wait_neither_keep_a_tool_recovering_nor_let_an_outage_through() {
        let recovering = ToolHealth { usual_rate: 200.0, recovering_since: Some(start()), ..new("look") };
        let mut health = recovering;
        for _ in 0..1_200 {
            health = later(&health, 500, observed(100, 5), true);
        }
        assert!((health.per_second - 2_000.0).abs() < 1e-9, "{}", health.per_second);
        health = later(&health, 2_000, observed(400, 20), true);
        assert_eq!(health.recovering_since, None);
        health = later(&health, 1_000, observed(0, 200), true);
        assert!((health.per_second - BUDGET.per_second).abs() < 1e-9 && health.tokens <= BUDGET.burst);
    }
}
