//! Numbers within bounds.

use serde_json::{Number, Value};

/// No bound is taken into account beyond this: an f64 holds every integer up to here.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Bounds of several schemas together.
struct Bounds {
    low: Option<f64>,
    high: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
    step: Option<f64>,
}

impl Bounds {
    fn of(parts: &[&Value]) -> Self {
        let all = |name: &str| parts.iter().filter_map(|part| part.get(name)?.as_f64()).collect::<Vec<f64>>();
        let largest = |name: &str| all(name).into_iter().reduce(f64::max);
        let smallest = |name: &str| all(name).into_iter().reduce(f64::min);
        Self {
            low: largest("minimum"),
            high: smallest("maximum"),
            above: largest("exclusiveMinimum"),
            below: smallest("exclusiveMaximum"),
            step: largest("multipleOf").filter(|step| *step > 0.0),
        }
    }

    /// Returns the number closest to 1 within the bounds, a multiple of `step`; `variant` more steps from there.
    fn closest(&self, step: f64, variant: f64) -> f64 {
        let low = self.low.into_iter().chain(self.above.map(|above| next_multiple(above, step))).reduce(f64::max);
        let high = self.high.into_iter().chain(self.below.map(|below| last_multiple(below, step))).reduce(f64::min);
        let start = step.max(1.0);
        let start = low.map_or(start, |low| start.max(low));
        let start = high.map_or(start, |high| start.min(high));
        let up = (start / step).ceil() * step;
        let fits = high.is_none_or(|high| up <= high);
        let from = if fits { up } else { (start / step).floor() * step };
        let further = from + variant * step;
        if high.is_none_or(|high| further <= high) { further } else { from - variant * step }
    }
}

fn next_multiple(above: f64, step: f64) -> f64 {
    ((above / step).floor() + 1.0) * step
}

fn last_multiple(below: f64, step: f64) -> f64 {
    ((below / step).ceil() - 1.0) * step
}

/// Makes an integer; `None` if the bounds are too large to be sure of every digit.
pub(super) fn integer(parts: &[&Value], variant: usize) -> Option<Value> {
    let bounds = Bounds::of(parts);
    let step = bounds.step.filter(|step| step.fract() == 0.0).unwrap_or(1.0);
    whole(bounds.closest(step, small(variant)))
}

/// Makes an integer if there is one within the bounds, else a number with a fraction.
pub(super) fn number(parts: &[&Value], variant: usize) -> Option<Value> {
    let bounds = Bounds::of(parts);
    let step = bounds.step.unwrap_or(1.0);
    let one = bounds.closest(step, small(variant));
    let low = bounds.low.into_iter().chain(bounds.above).reduce(f64::max);
    let high = bounds.high.into_iter().chain(bounds.below).reduce(f64::min);
    let one = match (low, high) {
        (Some(low), Some(high)) if bounds.step.is_none() && !(low..=high).contains(&one) => low + (high - low) / 2.0,
        (Some(low), Some(high)) if bounds.step.is_none() && bounds.below == Some(one) => low + (high - low) / 2.0,
        _ => one,
    };
    whole(one).or_else(|| Number::from_f64(one).map(Value::Number))
}

fn small(variant: usize) -> f64 {
    f64::from(u16::try_from(variant).unwrap_or(u16::MAX))
}

#[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
fn whole(number: f64) -> Option<Value> {
    (number.fract() == 0.0 && number.abs() <= MAX_WHOLE).then(|| Value::from(number as i64))
}
