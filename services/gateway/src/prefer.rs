//! How long a request waits: the header `Prefer` (RFC 7240).

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};

pub(crate) const LONGEST: Duration = Duration::from_mins(1);

/// Returns the wait wanted, at most [`LONGEST`]; ignores other preferences and what cannot be read, as the RFC asks.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let wait = preferences.flat_map(|value| value.split([',', ';'])).find_map(|preference| {
        let (name, seconds) = preference.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| seconds.trim().trim_matches('"').parse::<u64>().ok())?
    });
    wait.map(|seconds| Duration::from_secs(seconds).min(LONGEST))
}

/// Says which wait was kept to.
pub(crate) fn applied(headers: &mut HeaderMap, wait: Option<Duration>) {
    if let Some(value) = wait.and_then(|wait| HeaderValue::from_str(&format!("wait={}", wait.as_secs())).ok()) {
        headers.insert("preference-applied", value);
    }
}

/// Says where to wait again, and that it may be at once: the wait was over before the end.
pub(crate) fn wait_again(headers: &mut HeaderMap, location: &str) {
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("0"));
    if let Ok(location) = HeaderValue::from_str(location) {
        headers.insert(header::LOCATION, location);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_read_and_bounded() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(text));
            wait(&headers).map(|wait| wait.as_secs())
        };
        assert_eq!(read("wait=20"), Some(20));
        assert_eq!(read("respond-async, Wait=\"5\"; foo"), Some(5));
        assert_eq!(read("wait=100000"), Some(60));
        assert_eq!(read("wait=-1"), None);
        assert_eq!(read("wait"), None);
        assert_eq!(wait(&HeaderMap::new()), None);
    }
}
