//! How long loops wait after a failure.

use std::time::Duration;

use rand::Rng as _;

/// 100, 200, 400 … `cap` ms, each times 0.5 to 1.5. `failures` counts from 1.
pub(crate) fn after(failures: u32, cap: Duration) -> Duration {
    spread(doubled(failures, cap), rand::rng().random_range(0.5..1.5))
}

fn doubled(failures: u32, cap: Duration) -> Duration {
    Duration::from_millis(100 << failures.saturating_sub(1).min(20)).min(cap)
}

fn spread(wait: Duration, factor: f64) -> Duration {
    wait.mul_f64(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap() {
        let cap = Duration::from_secs(2);
        let waits: Vec<_> = [0, 1, 2, 3, 5, 6, u32::MAX].map(|n| doubled(n, cap).as_millis()).into();
        assert_eq!(waits, [100, 100, 200, 400, 1600, 2000, 2000]);
        assert_eq!(spread(cap, 0.5), Duration::from_secs(1));
    }
}
