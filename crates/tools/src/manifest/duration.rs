//! Durations in configuration files: `500ms`, `30s`, `5m`, `2h`.

use std::time::Duration;

/// Reads a duration; at least 1 ms.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let ms = unit_ms.and_then(|unit_ms| number.parse::<u64>().ok()?.checked_mul(unit_ms));
    match ms {
        Some(ms @ 1..) => Ok(Duration::from_millis(ms)),
        _ => Err(format!(
            "{text:?} is no duration; allowed: a whole number over 0 and ms, s, m or h, such as \"500ms\" or \"30s\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("007s", 7000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)));
        }
        for text in
            ["", "30", "s", "1.5s", "-1s", "0s", "1 s", "1d", "99999999999999999999s", "9999999999999999999h", "１s"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
