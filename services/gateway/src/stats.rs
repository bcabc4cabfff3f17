//! What this gateway counts, in the text format of Prometheus (version 0.0.4).

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Upper bounds of the buckets, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

/// See the module.
#[derive(Default)]
pub(crate) struct Stats {
    answered: Mutex<BTreeMap<Answered, Times>>,
    /// Streams of events that are open.
    pub(crate) streams: AtomicU64,
    /// Lines of NDJSON streams that were submitted.
    pub(crate) lines: AtomicU64,
}

/// Route, method, status.
type Answered = (String, String, u16);

#[derive(Default)]
struct Times {
    count: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
}

impl Stats {
    /// A request was answered; of a stream, it began. `route` is the address as it is declared.
    pub(crate) fn answered(&self, route: &str, method: &str, status: u16, took: Duration) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let times = answered.entry((route.to_owned(), method.to_owned(), status)).or_default();
        let seconds = took.as_secs_f64();
        times.count += 1;
        times.seconds += seconds;
        for (bucket, _) in times.buckets.iter_mut().zip(BUCKETS).filter(|(_, bound)| seconds <= *bound) {
            *bucket += 1;
        }
    }

    /// The page for Prometheus; which requests were answered only `with_routes`.
    pub(crate) fn page(&self, waiting: usize, with_routes: bool) -> String {
        let mut page = String::new();
        head(&mut page, "redial_gateway_request_duration_seconds", "histogram", "Time until the answer began.");
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        for ((route, method, status), times) in answered.iter().filter(|_| with_routes) {
            let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
            let name = "redial_gateway_request_duration_seconds";
            for (bound, count) in BUCKETS.iter().zip(times.buckets) {
                let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", times.count);
            let _ = writeln!(page, "{name}_sum{{{labels}}} {}", times.seconds);
            let _ = writeln!(page, "{name}_count{{{labels}}} {}", times.count);
        }
        let one = |page: &mut String, name, kind, help, value: u64| {
            head(page, name, kind, help);
            let _ = writeln!(page, "{name} {value}");
        };
        let (streams, lines) = (self.streams.load(Ordering::Relaxed), self.lines.load(Ordering::Relaxed));
        one(&mut page, "redial_gateway_streams", "gauge", "Streams of events that are open.", streams);
        one(
            &mut page,
            "redial_gateway_waiting",
            "gauge",
            "Calls and tasks that requests and streams wait for, each counted once for each of them.",
            waiting as u64,
        );
        one(&mut page, "redial_gateway_submitted_lines_total", "counter", "Lines of NDJSON streams.", lines);
        page
    }
}

pub(crate) fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_by_route() {
        let stats = Stats::default();
        stats.answered("/v1/calls", "POST", 202, Duration::from_millis(3));
        stats.answered("/v1/calls", "POST", 202, Duration::from_secs(2));
        let page = stats.page(7, true);
        let labels = "route=\"/v1/calls\",method=\"POST\",status=\"202\"";
        for line in [
            format!("redial_gateway_request_duration_seconds_bucket{{{labels},le=\"0.0025\"}} 0"),
            format!("redial_gateway_request_duration_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("redial_gateway_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            "redial_gateway_waiting 7".to_owned(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }
}
