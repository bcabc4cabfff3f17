//! Durations as people write them, in files, environment variables and flags: `500ms`, `30s`, `1h 30m`.

use std::time::Duration;

/// Reads a duration: numbers, each with a unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| format!("{text:?} is not a duration; allowed: \"500ms\", \"30s\", \"1h 30m\" and the like"))
}

/// The same for a limit, which is at least 1 ms.
pub fn parse_positive(text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    if duration < Duration::from_millis(1) {
        return Err(format!("{text:?} is too short; allowed: at least 1ms, such as \"500ms\", \"30s\" or \"1h 30m\""));
    }
    Ok(duration)
}

/// [`parse_positive`] in whole ms.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    parse_positive(text).map(whole_ms)
}

/// A duration for a field in ms: rounded down; one of more than 500 million years becomes the largest number.
pub fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units() {
        let accepted = [
            ("1ms", 1),
            ("500ms", 500),
            ("007s", 7000),
            ("1.5s", 1500),
            ("1 s", 1000),
            ("2m", 120_000),
            ("1h 30m", 5_400_000),
            ("1d", 86_400_000),
            ("2500us", 2),
        ];
        for (text, ms) in accepted {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
        let huge = ["99999999999999999999s", "9999999999999999999h"];
        for text in ["", "5", "ms", "+5s", "-1s", "１s", "5 parsecs"].into_iter().chain(huge) {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(&format!("{text:?} is not a duration; allowed: ")), "{error}");
        }
        for text in ["0s", "0", "999us"] {
            assert!(parse(text).is_ok_and(|duration| duration < Duration::from_millis(1)), "{text}");
            let error = parse_positive(text).expect_err(text);
            assert!(error.starts_with(&format!("{text:?} is too short; allowed: at least 1ms")), "{error}");
        }
    }
}
