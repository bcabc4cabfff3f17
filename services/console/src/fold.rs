//! The scale of a timeline: from times to places in percent, with long gaps folded.

use chrono::{DateTime, TimeDelta, Utc};

use crate::show;

/// A gap is folded if it is longer than this, and longer than this share of the time in which something happened.
const LEAST_GAP_MS: i64 = 2_000;
const GAP_SHARE: i64 = 5;
/// What a folded gap takes, in percent; all of them together at most [`FOLDS`].
const FOLD: f64 = 5.0;
const FOLDS: f64 = 35.0;
/// Labels of a ruler are so far apart at least, in percent.
const APART: f64 = 9.0;
/// Where the time ends: a mark at the end needs room, too.
const WHOLE: f64 = 98.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: DateTime<Utc>,
    pub(crate) to: DateTime<Utc>,
}

#[derive(Debug)]
pub(crate) struct Scale {
    parts: Vec<Part>,
    begin: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    x: f64,
    width: f64,
    folded: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) x: f64,
    pub(crate) label: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fold {
    pub(crate) x: f64,
    pub(crate) width: f64,
    pub(crate) label: String,
}

impl Scale {
    /// Scales the time from `begin` to `end` in which something happened during `busy`.
    pub(crate) fn new(begin: DateTime<Utc>, end: DateTime<Utc>, busy: &[Span]) -> Self {
        let end = end.max(begin + TimeDelta::milliseconds(1));
        let busy = merged(begin, end, busy);
        let total: i64 = busy.iter().map(|span| ms(span.from, span.to)).sum();
        let least = LEAST_GAP_MS.max(total / GAP_SHARE);
        let mut parts = Vec::new();
        let mut at = begin;
        for span in busy.iter().copied().chain([Span { from: end, to: end }]) {
            if ms(at, span.from) > least {
                parts.push((at, span.from, true));
            } else if span.from > at {
                parts.push((at, span.from, false));
            }
            if span.to > span.from {
                parts.push((span.from, span.to, false));
            }
            at = at.max(span.to);
        }
        Self { parts: placed(&parts), begin }
    }

    /// Returns where a time is, in percent.
    pub(crate) fn x(&self, at: DateTime<Utc>) -> f64 {
        let Some(part) = self.parts.iter().find(|part| at <= part.to).or(self.parts.last()) else { return 0.0 };
        let share = real(ms(part.from, at)) / real(ms(part.from, part.to)).max(1.0);
        (part.x + part.width * share.clamp(0.0, 1.0)).clamp(0.0, WHOLE)
    }

    pub(crate) fn folds(&self) -> Vec<Fold> {
        let folded = self.parts.iter().filter(|part| part.folded);
        folded.map(|part| Fold { x: part.x, width: part.width, label: show::span(ms(part.from, part.to)) }).collect()
    }

    /// Returns what is written on the ruler: times since the begin.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        let open: i64 = self.parts.iter().filter(|part| !part.folded).map(|part| ms(part.from, part.to)).sum();
        let step = nice(open / 7);
        let mut ticks: Vec<Tick> = Vec::new();
        for part in self.parts.iter().filter(|part| !part.folded) {
            let first = ms(self.begin, part.from).div_euclid(step) * step;
            let times = (0..64).map(|n| first + n * step).take_while(|at| *at <= ms(self.begin, part.to));
            for at in times.filter(|at| *at >= ms(self.begin, part.from)) {
                let x = self.x(self.begin + TimeDelta::milliseconds(at));
                if x <= 86.0 && ticks.last().is_none_or(|last| x - last.x >= APART) {
                    let label = if at == 0 { "0".to_owned() } else { show::span(at) };
                    ticks.push(Tick { x, label });
                }
            }
        }
        ticks
    }
}

/// Returns the spans within the time, in order, without overlaps.
fn merged(begin: DateTime<Utc>, end: DateTime<Utc>, busy: &[Span]) -> Vec<Span> {
    let within = |span: &Span| Span { from: span.from.clamp(begin, end), to: span.to.clamp(begin, end) };
    let mut spans: Vec<Span> = busy.iter().map(within).collect();
    spans.sort_by_key(|span| span.from);
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
            _ => merged.push(span),
        }
    }
    merged
}

fn placed(parts: &[(DateTime<Utc>, DateTime<Utc>, bool)]) -> Vec<Part> {
    let folds = parts.iter().filter(|(.., folded)| *folded).count();
    let fold = if folds == 0 { 0.0 } else { FOLD.min(FOLDS / real(i64::try_from(folds).unwrap_or(i64::MAX))) };
    let open: i64 = parts.iter().filter(|(.., folded)| !folded).map(|(from, to, _)| ms(*from, *to)).sum();
    let left = WHOLE - fold * real(i64::try_from(folds).unwrap_or(0));
    let mut x = 0.0;
    let place = |(from, to, folded): &(DateTime<Utc>, DateTime<Utc>, bool)| {
        let width = if *folded { fold } else { left * real(ms(*from, *to)) / real(open).max(1.0) };
        let part = Part { from: *from, to: *to, x, width, folded: *folded };
        x += width;
        part
    };
    parts.iter().map(place).collect()
}

/// Returns the next larger step that people count in.
fn nice(ms: i64) -> i64 {
    const STEPS: [i64; 24] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
        600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000,
    ];
    STEPS.into_iter().find(|step| *step >= ms).unwrap_or(ms.max(1))
}

fn ms(from: DateTime<Utc>, to: DateTime<Utc>) -> i64 {
    (to - from).num_milliseconds()
}

#[expect(clippy::cast_precision_loss, reason = "a place in percent")]
const fn real(ms: i64) -> f64 {
    ms as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms)
    }

    fn scale(end: i64, busy: &[(i64, i64)]) -> Scale {
        let busy: Vec<_> = busy.iter().map(|(from, to)| Span { from: at(*from), to: at(*to) }).collect();
        Scale::new(at(0), at(end), &busy)
    }

    #[test]
    fn a_long_gap_takes_little_room() {
        let two_hours = 7_200_000;
        let scale = scale(two_hours + 2_000, &[(0, 1_000), (two_hours + 1_000, two_hours + 2_000)]);
        let folds = scale.folds();
        assert_eq!(folds.len(), 1);
        assert_eq!((folds[0].width, folds[0].label.as_str()), (FOLD, "2 h"));
        let open = (WHOLE - FOLD) / 2.0;
        assert!((scale.x(at(1_000)) - open).abs() < 0.1, "{}", scale.x(at(1_000)));
        assert!((scale.x(at(two_hours + 1_000)) - open - FOLD).abs() < 0.1);
    }

    #[test]
    fn places_never_run_backwards_and_end_where_the_time_ends() {
        let scale = scale(900_000, &[(10, 20), (15, 4_000), (300_000, 301_000), (300_500, 900_000)]);
        let places: Vec<f64> = (0..=900).map(|n| scale.x(at(n * 1_000))).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert!((scale.x(at(900_000)) - WHOLE).abs() < 1e-6);
        assert!(scale.x(at(-5)).abs() < 1e-9);
        assert!((scale.x(at(9_000_000)) - WHOLE).abs() < 1e-6);
    }

    #[test]
    fn many_folds_share_what_folds_may_take() {
        let busy: Vec<_> = (0..40).map(|n| (n * 3_600_000, n * 3_600_000 + 100)).collect();
        let scale = scale(40 * 3_600_000, &busy);
        let folded: f64 = scale.folds().iter().map(|fold| fold.width).sum();
        assert!(folded <= FOLDS + 1e-6, "{folded}");
    }

    #[test]
    fn a_ruler_has_a_handful_of_labels() {
        for end in [1, 10, 999, 60_000, 3_600_000, 400_000_000] {
            let ticks = scale(end, &[(0, end)]).ticks();
            assert!((1..=11).contains(&ticks.len()), "{end}: {ticks:?}");
            assert_eq!(ticks[0].label, "0");
        }
    }
}
