//! Numbers of both kinds, times, and the size of batches.

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_sign_loss, reason = "nothing here is negative")]
pub(super) fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Seconds as whole microseconds.
pub(super) fn micros(seconds: f64) -> u64 {
    whole(seconds * 1e6)
}

/// The size of a batch when so many items arrive per second, and so many batches are worked on at once. A batch takes `fixed` seconds and
/// `each` for each item. Items that arrive meanwhile become the next batch, so it is one item until all are busy. `None`: more arrive
/// than batches of `most` can take.
pub(super) fn batch(arrivals: f64, at_once: f64, (fixed, each): (f64, f64), most: f64) -> Option<f64> {
    let spare = at_once - arrivals * each;
    let size = arrivals * fixed / spare;
    (spare > 0.0 && size <= most).then_some(size.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_one_item_until_all_are_busy_and_has_a_limit() {
        let of = |arrivals| batch(arrivals, 3.0, (0.002, 0.0), 16.0);
        assert_eq!((of(100.0), of(1_500.0)), (Some(1.0), Some(1.0)));
        assert_eq!((of(15_000.0), of(24_001.0)), (Some(10.0), None));
        assert_eq!(batch(400.0, 2.0, (0.001, 0.005), 16.0), None, "its items alone take all the time");
    }
}
