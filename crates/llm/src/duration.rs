//! Durations in configuration files: `500ms`, `30s`, `5m`, `2h`.

use std::time::Duration;

/// Reads a duration; at least 1 ms.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let unit_ms = match &text[number.len()..] {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let whole = number.bytes().all(|byte| byte.is_ascii_digit());
    let ms = unit_ms.filter(|_| whole).and_then(|unit_ms| number.parse::<u64>().ok()?.checked_mul(unit_ms));
    ms.filter(|ms| *ms > 0).map(Duration::from_millis).ok_or_else(|| {
        format!(
            "{text:?} is no duration; allowed: a whole number over 0 and ms, s, m or h, such as \"500ms\" or \"30s\""
        )
    })
}

/// The same in whole ms.
pub(crate) fn parse_ms(text: &str) -> Result<u64, String> {
    parse(text).map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit() {
        for (text, ms) in [("1ms", 1), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(parse_ms(text), Ok(ms));
        }
        for text in ["", "5", "ms", "+5s", "1.5s", "0s", "5 s", "5d", "99999999999999999999s", "9999999999999999999h"] {
            assert!(parse(text).unwrap_err().contains("allowed"), "{text}");
        }
    }
}
