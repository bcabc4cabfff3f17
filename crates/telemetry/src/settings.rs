//! The standard `OTEL_*` variables that enable an export. The exporters themselves read the others (headers, timeouts,
//! intervals, the sampler).

use std::time::Duration;

use reqwest::Url;

use crate::TelemetryError;

/// The signals to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) traces: bool,
    pub(crate) metrics: bool,
}

/// The variables of one signal.
pub(crate) struct Names {
    endpoint: &'static str,
    protocol: &'static str,
    exporter: &'static str,
    headers: &'static str,
    timeout: &'static str,
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";

pub(crate) const TRACES: Names = Names {
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    exporter: "OTEL_TRACES_EXPORTER",
    headers: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    timeout: "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
};
pub(crate) const METRICS: Names = Names {
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    exporter: "OTEL_METRICS_EXPORTER",
    headers: "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    timeout: "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
};

/// What an exporter's HTTP client has to know.
pub(crate) struct Target {
    /// Where the signal goes; `None` for the specification's default, which is this machine.
    pub(crate) url: Option<Url>,
    /// Whether requests have headers of the operator, which may be keys.
    pub(crate) has_secret: bool,
    /// The specification's 10 s if no valid timeout is set: a wrong timeout is not a reason to lose the telemetry.
    pub(crate) timeout: Duration,
}

impl Target {
    pub(crate) fn read(names: &Names, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let timeout = |name: &str| set(name)?.parse().ok();
        Self {
            url: set(names.endpoint).or_else(|| set(ENDPOINT)).and_then(|url| Url::parse(&url).ok()),
            has_secret: set(names.headers).or_else(|| set(HEADERS)).is_some(),
            timeout: Duration::from_millis(timeout(names.timeout).or_else(|| timeout(TIMEOUT)).unwrap_or(10_000)),
        }
    }
}

/// Reads the switches with `variable`, which returns the value of an environment variable. An empty value counts as
/// not set, as the OpenTelemetry specification says.
pub(crate) fn signals(variable: impl Fn(&str) -> Option<String>) -> Result<Signals, TelemetryError> {
    let read = |name: &str| variable(name).filter(|value| !value.is_empty());
    if read("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(Signals { traces: false, metrics: false });
    }
    Ok(Signals { traces: is_on(&TRACES, read)?, metrics: is_on(&METRICS, read)? })
}

fn is_on(names: &Names, read: impl Fn(&str) -> Option<String>) -> Result<bool, TelemetryError> {
    let first = |own, shared| read(own).map(|value| (own, value)).or_else(|| Some((shared, read(shared)?)));
    let Some((variable, url)) = first(names.endpoint, ENDPOINT) else { return Ok(false) };
    match read(names.exporter).as_deref() {
        None | Some("otlp") => {}
        Some("none") => return Ok(false),
        Some(value) => return Err(refused(names.exporter, value, "otlp, none")),
    }
    if let Some((variable, value)) = first(names.protocol, PROTOCOL)
        && value != "http/protobuf"
    {
        return Err(refused(variable, &value, "http/protobuf (usually port 4318, not 4317)"));
    }
    check_endpoint(variable, &url)?;
    Ok(true)
}

fn refused(variable: &'static str, value: &str, allowed: &'static str) -> TelemetryError {
    TelemetryError::Variable { variable, value: value.to_owned(), allowed }
}

fn check_endpoint(variable: &'static str, url: &str) -> Result<(), TelemetryError> {
    let reason = match Url::parse(url) {
        Err(_) => "not a URL",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "not an HTTP URL",
        // It would be part of every request and shown in errors; headers have their own variable.
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "holds a user or password, which belong in OTEL_EXPORTER_OTLP_HEADERS"
        }
        Ok(_) => return Ok(()),
    };
    Err(TelemetryError::Endpoint { variable, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Signals, String> {
        let read = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        signals(read).map_err(|error| error.to_string())
    }

    const ON: (&str, &str) = (ENDPOINT, "http://collector:4318");

    #[test]
    fn an_endpoint_enables_its_signals() {
        let both = Signals { traces: true, metrics: true };
        let none = Signals { traces: false, metrics: false };
        assert_eq!(with(&[]), Ok(none));
        assert_eq!(with(&[(ENDPOINT, "")]), Ok(none));
        assert_eq!(with(&[ON]), Ok(both));
        assert_eq!(with(&[(TRACES.endpoint, ON.1)]), Ok(Signals { traces: true, metrics: false }));
        assert_eq!(with(&[(METRICS.endpoint, ON.1)]), Ok(Signals { traces: false, metrics: true }));
        assert_eq!(with(&[ON, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(none));
        assert_eq!(with(&[ON, ("OTEL_SDK_DISABLED", "false")]), Ok(both));
        assert_eq!(with(&[ON, (METRICS.exporter, "none")]), Ok(Signals { traces: true, metrics: false }));
        assert_eq!(with(&[ON, (PROTOCOL, "http/protobuf")]), Ok(both));
    }

    #[test]
    fn a_setting_that_cannot_be_followed_is_refused_by_name() {
        let error = with(&[ON, (PROTOCOL, "grpc")]).unwrap_err();
        assert!(error.starts_with(r#"OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; allowed: http/protobuf"#), "{error}");
        let error = with(&[ON, (PROTOCOL, "http/protobuf"), (METRICS.protocol, "grpc")]).unwrap_err();
        assert!(error.starts_with("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL is"), "{error}");
        let error = with(&[ON, (TRACES.exporter, "zipkin")]).unwrap_err();
        assert_eq!(error, r#"OTEL_TRACES_EXPORTER is "zipkin"; allowed: otlp, none"#);
        let error = with(&[(TRACES.endpoint, "collector:4318")]).unwrap_err();
        assert!(error.starts_with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not an HTTP URL; allowed:"), "{error}");
    }

    #[test]
    fn a_password_in_an_endpoint_is_refused_and_not_shown() {
        let error = with(&[(ENDPOINT, "http://me:hunter2@collector:4318")]).unwrap_err();
        assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS") && !error.contains("hunter2"), "{error}");
        let error = with(&[(ENDPOINT, "http://me:hunter2@:collector")]).unwrap_err();
        assert!(error.contains("not a URL") && !error.contains("hunter2"), "{error}");
    }
}
