//! How long a server asks clients to wait.

use std::time::{Duration, SystemTime};

/// A server that asks for more than a year makes a mistake.
const LONGEST: Duration = Duration::from_hours(8784);

/// The pause that the headers of an answer ask for, in ms: `retry-after-ms` (OpenAI and Azure send it) because it is
/// the more precise one, else `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3). A date in the past is a pause
/// of 0; a pause over a year counts as a year; a header that cannot be read is ignored.
///
/// `header` looks up a header by its name in lower case.
pub fn pause_ms<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<u64> {
    let precise = header("retry-after-ms").and_then(|text| pause(text, Duration::from_millis(1)));
    let pause = precise.or_else(|| {
        let text = header("retry-after")?;
        pause(text, Duration::from_secs(1)).or_else(|| until(text, now))
    })?;
    // Rounded up: one ms too late is fine, one too early is not.
    u64::try_from(pause.min(LONGEST).as_nanos().div_ceil(1_000_000)).ok()
}

fn pause(text: &str, unit: Duration) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok().filter(|number| *number >= 0.0)?;
    Some(Duration::try_from_secs_f64(number * unit.as_secs_f64()).unwrap_or(LONGEST))
}

fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_seconds_and_dates() {
        let now = httpdate::parse_http_date("Fri, 06 Nov 2026 08:49:37 GMT").unwrap() + Duration::from_millis(400);
        let year = Some(366 * 24 * 3600 * 1000);
        for (precise, text, wanted) in [
            ("", "20", Some(20_000)),
            ("", " 0 ", Some(0)),
            ("", " 0.25 ", Some(250)),
            ("", "0.0001", Some(1)),
            ("", "Fri, 06 Nov 2026 08:49:40 GMT", Some(2600)),
            ("", "Friday, 06-Nov-26 08:49:40 GMT", Some(2600)),
            ("", "Fri, 06 Nov 2026 08:00:00 GMT", Some(0)),
            ("", "Fri, 06 Nov 2099 08:00:00 GMT", year),
            ("", "1e99", year),
            ("", "inf", year),
            ("", "-3", None),
            ("", "NaN", None),
            ("", "later", None),
            ("", "", None),
            ("1250", "2", Some(1250)),
            ("1250", "", Some(1250)),
            ("0.5", "", Some(1)),
            ("1e99", "2", year),
            ("soon", "2", Some(2000)),
            ("-1", "2", Some(2000)),
            ("NaN", "Fri, 06 Nov 2026 08:49:40 GMT", Some(2600)),
        ] {
            let header = |name: &str| Some(if name == "retry-after" { text } else { precise });
            assert_eq!(pause_ms(header, now), wanted, "retry-after-ms {precise:?}, retry-after {text:?}");
        }
        assert_eq!(pause_ms(|_| None, now), None);
    }
}
