//! How many retries a tool gets, so that retrying does not amplify an outage.

/// A bucket of retry tokens, one per tool, shared by all dispatchers.
///
/// A success earns a tenth of a token, a retry costs one. A full bucket lets a burst of [`Budget::CAPACITY`] retries
/// through; after that a tool that only fails gets [`Budget::PER_SECOND`] retries per second as probes. A retry
/// without a token is not lost and costs no attempt: it waits longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Retries that may run now.
    pub tokens: f64,
}

impl Budget {
    /// Tokens of a full bucket, which is also what a new tool starts with.
    pub const CAPACITY: f64 = 100.0;
    /// Tokens earned by a success.
    pub const PER_SUCCESS: f64 = 0.1;
    /// Tokens earned by time alone: the probes that find out when an outage is over.
    pub const PER_SECOND: f64 = 1.0;

    /// A full bucket.
    pub const fn full() -> Self {
        Self { tokens: Self::CAPACITY }
    }

    /// The bucket after some successes and seconds.
    #[must_use]
    pub fn earned(self, successes: f64, seconds: f64) -> Self {
        let earned = successes.max(0.0) * Self::PER_SUCCESS + seconds.max(0.0) * Self::PER_SECOND;
        Self { tokens: (self.tokens + earned).min(Self::CAPACITY) }
    }

    /// Takes a token for one retry, if there is one.
    pub fn take(&mut self) -> bool {
        let allowed = self.tokens >= 1.0;
        if allowed {
            self.tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_gets_a_burst_and_then_probes() {
        let mut budget = Budget::full();
        let burst = (0..1000).filter(|_| budget.take()).count();
        assert_eq!(burst, 100);
        budget = budget.earned(0.0, 3.0);
        assert_eq!((0..1000).filter(|_| budget.take()).count(), 3);
    }

    #[test]
    fn successes_refill_up_to_the_capacity() {
        let budget = Budget { tokens: 0.0 }.earned(50.0, 0.0);
        assert!((budget.tokens - 5.0).abs() < 1e-9);
        assert_eq!(budget.earned(1e9, 0.0), Budget::full());
        assert_eq!(budget.earned(-5.0, -5.0), budget, "a clock that jumps back takes nothing away");
    }
}
