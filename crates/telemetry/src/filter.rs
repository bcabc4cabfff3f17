//! Filters of logs: which events are written.

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::TelemetryError;

/// True if logs can be filtered by this text.
pub fn is_filter(text: &str) -> bool {
    parse(text).is_ok()
}

/// Reads a filter. The library takes a word that is no level for a target of which everything is wanted, so that a misspelt
/// level would be accepted and hide all else; here a target needs a level.
pub(crate) fn parse(filter: &str) -> Result<EnvFilter, TelemetryError> {
    let wrong = |reason: String| TelemetryError::Filter { filter: filter.to_owned(), reason };
    let mut directives = filter.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    if let Some(word) = directives.find(|directive| !has_level(directive)) {
        return Err(wrong(format!("{word:?} is no level")));
    }
    EnvFilter::builder().parse(filter).map_err(|error| wrong(error.to_string()))
}

/// True for a directive with a level, and for a span in brackets, which may stand without one; whether the rest is well
/// formed is for the library to say.
fn has_level(directive: &str) -> bool {
    directive.contains(['=', '[']) || directive.parse::<LevelFilter>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_no_filter() {
        for filter in ["info", "WARN", "off", "5", "info,redial_worker=debug", "warn,a::b=off,", "info,[span{a=1}]"] {
            assert!(is_filter(filter), "{filter}");
        }
        for filter in ["loud", "info,loud", "redial", "redial=loud", "x[y", "info;debug", "6"] {
            let error = parse(filter).unwrap_err().to_string();
            assert!(error.contains(&format!("{filter:?}")) && error.contains("; allowed: a level (off, "), "{error}");
        }
    }
}
