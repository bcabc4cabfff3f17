//! How long a server asks to be left alone.

use std::time::SystemTime;

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// More than this is no pause but a mistake.
const MAX_MS: u64 = 366 * 24 * 3600 * 1000;

/// The pause in ms: `retry-after-ms` (OpenAI and Azure send it), else `Retry-After` in seconds or as a date
/// (RFC 9110, 10.2.3). A date in the past is no pause.
pub(crate) fn pause_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let precise = text(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    let seconds = text(headers, RETRY_AFTER.as_str());
    let ms = precise.or_else(|| seconds.and_then(|text| text.parse::<f64>().ok()).map(|seconds| seconds * 1000.0));
    if let Some(ms) = ms.filter(|ms| ms.is_finite() && *ms >= 0.0) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; `as` saturates")]
        return Some((ms.ceil() as u64).min(MAX_MS));
    }
    let date = httpdate::parse_http_date(seconds?).ok()?;
    let pause = date.duration_since(now).unwrap_or_default();
    Some(u64::try_from(pause.as_millis()).unwrap_or(MAX_MS).min(MAX_MS))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn seconds_dates_and_milliseconds() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2026 07:28:00 GMT").unwrap() + Duration::from_millis(250);
        for (name, value, expected) in [
            ("retry-after", "3", Some(3000)),
            ("retry-after", " 0 ", Some(0)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e300", Some(MAX_MS)),
            ("retry-after", "NaN", None),
            ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT", Some(29_750)),
            ("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT", Some(0)),
            ("retry-after-ms", "1500", Some(1500)),
            ("retry-after-ms", "0.2", Some(1)),
        ] {
            let headers: HeaderMap = [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            assert_eq!(pause_ms(&headers, now), expected, "{name}: {value}");
        }
        let both = [("retry-after", "2"), ("retry-after-ms", "1200")];
        let both = both.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).into_iter().collect();
        assert_eq!(pause_ms(&both, now), Some(1200));
    }
}
