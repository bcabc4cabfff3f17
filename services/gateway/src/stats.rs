//! What this gateway counts, in the text format of Prometheus.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, prometheus_text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::refusals::Refusals;

/// Upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

pub(crate) struct Stats {
    answered: Family<Answered, Histogram, fn() -> Histogram>,
    /// Streams of events that are open.
    pub(crate) streams: Gauge,
    /// Lines of NDJSON streams that were submitted.
    pub(crate) lines: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    method: String,
    status: u16,
}

impl Default for Stats {
    fn default() -> Self {
        let answered = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        Self { answered, streams: Gauge::default(), lines: Counter::default() }
    }
}

impl Stats {
    /// Records that a request was answered; of a stream, that it began. `route` is the address as it is declared.
    pub(crate) fn answered(&self, route: &str, method: &str, status: u16, took: Duration) {
        let labels = Answered { route: route.to_owned(), method: method.to_owned(), status };
        self.answered.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Returns the page for Prometheus; what was answered and refused to all tenants only with `of_all`.
    pub(crate) fn page(&self, waiting: usize, of_all: Option<&Refusals>) -> String {
        let mut registry = Registry::with_prefix("redial_gateway");
        if let Some(refusals) = of_all {
            registry.register("request_duration_seconds", "Time until the answer began", self.answered.clone());
            registry.register("refused_tokens", "Requests without a valid token, by reason", refusals.counts());
        }
        registry.register("streams", "Streams of events that are open", self.streams.clone());
        let waiters: Gauge = Gauge::default();
        waiters.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        let about = "Calls and tasks that requests and streams wait for, each counted once for each of them";
        registry.register("waiting", about, waiters);
        registry.register("submitted_lines", "Lines of NDJSON streams", self.lines.clone());
        encoded(&registry)
    }
}

/// Returns the metrics of a registry in the text format of Prometheus, version 0.0.4.
pub(crate) fn encoded(registry: &Registry) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = prometheus_text::encode(&mut page, registry);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_by_route() {
        let stats = Stats::default();
        stats.answered("/v1/calls", "POST", 202, Duration::from_millis(3));
        stats.answered("/v1/calls", "POST", 202, Duration::from_secs(2));
        stats.lines.inc_by(3);
        let page = stats.page(7, Some(&Refusals::default()));
        let labels = "route=\"/v1/calls\",method=\"POST\",status=\"202\"";
        for line in [
            format!("redial_gateway_request_duration_seconds_bucket{{{labels},le=\"0.0025\"}} 0"),
            format!("redial_gateway_request_duration_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("redial_gateway_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            "redial_gateway_waiting 7".to_owned(),
            "redial_gateway_submitted_lines_total 3".to_owned(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        assert!(!stats.page(7, None).contains("duration"));
    }
}
