//! How long a provider asks to be left alone.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// More than a year is no pause but a mistake.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The pause in ms: `retry-after-ms` first (it is the more precise one), else `Retry-After` in seconds or as a date
/// (RFC 9110, 10.2.3). A date in the past is no pause.
pub(super) fn pause_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    let written = text(RETRY_AFTER.as_str());
    let seconds = text("retry-after-ms").and_then(number).map(|ms| ms / 1000.0).or_else(|| written.and_then(number));
    let pause = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST),
        None => httpdate::parse_http_date(written?).ok()?.duration_since(now).unwrap_or_default(),
    };
    // Rounded up: one ms too late is fine, one too early is not.
    let ms = pause.min(LONGEST).as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_seconds_and_dates() {
        let now = httpdate::parse_http_date("Fri, 06 Nov 2026 08:49:37 GMT").unwrap() + Duration::from_millis(400);
        let year = Some(366 * 24 * 3600 * 1000);
        for (headers, pause) in [
            (&[("retry-after", "20")][..], Some(20_000)),
            (&[("retry-after", " 0.25 ")], Some(250)),
            (&[("retry-after", "Fri, 06 Nov 2026 08:49:40 GMT")], Some(2600)),
            (&[("retry-after", "Fri, 06 Nov 2026 08:00:00 GMT")], Some(0)),
            (&[("retry-after", "1e99")], year),
            (&[("retry-after", "inf")], year),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "later")], None),
            (&[("retry-after-ms", "1250"), ("retry-after", "2")], Some(1250)),
            (&[("retry-after-ms", "0.5")], Some(1)),
            (&[("retry-after-ms", "x"), ("retry-after", "2")], Some(2000)),
            (&[], None),
        ] {
            let map = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            assert_eq!(pause_ms(&map, now), pause, "{headers:?}");
        }
    }
}
