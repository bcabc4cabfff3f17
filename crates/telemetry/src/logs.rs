//! Structured logs on stderr: text for people on a terminal, one JSON object per line for machines. On demand also in a file.

use std::{io::IsTerminal, sync::Mutex};

use tracing_subscriber::{EnvFilter, Layer, Registry, filter::FilterExt as _, fmt, fmt::MakeWriter};

use crate::{
    TelemetryError,
    config::{LogFileConfig, TelemetryConfig},
    filter::parse,
    format::LogFormat,
    log_file::LogFile,
    quiet::{Counted, Quiet},
    visible::Visible,
};

/// Builds the layers that write logs: to stderr, and to a file if the configuration names one.
pub(crate) fn layers(config: &TelemetryConfig) -> Result<Vec<Box<dyn Layer<Registry> + Send + Sync>>, TelemetryError> {
    let terminal = std::io::stderr().is_terminal();
    let json = match config.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let color = terminal && std::env::var_os("NO_COLOR").is_none();
    let mut layers = vec![writing_to(std::io::stderr, json, color, parse(&config.filter)?, Quiet::default())];
    if let Some(LogFileConfig { path, filter }) = &config.file {
        let file = LogFile::open(path)
            .map_err(|error| TelemetryError::File { path: path.clone(), reason: error.to_string() })?;
        layers.push(writing_to(Mutex::new(file), false, false, parse(filter)?, Quiet::default()));
    }
    Ok(layers)
}

fn writing_to<W>(
    writer: W,
    json: bool,
    color: bool,
    filter: EnvFilter,
    quiet: Quiet,
) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let writer = Visible { inner: writer, json, colours: color };
    let layer = fmt::layer().with_writer(writer).with_ansi(color);
    let counted = quiet.clone();
    if json {
        let layer = layer.json().with_span_list(false);
        let layer = layer.map_event_format(|format| Counted { format, quiet: counted, json });
        layer.with_filter(filter.and(quiet)).boxed()
    } else {
        let layer = layer.map_event_format(|format| Counted { format: format.with_ansi(color), quiet: counted, json });
        layer.with_filter(filter.and(quiet)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn written(json: bool, filter: &str, log: impl Fn()) -> String {
        written_by(&Quiet::default(), json, filter, log)
    }

    fn written_by(quiet: &Quiet, json: bool, filter: &str, log: impl Fn()) -> String {
        let log_file = tempfile::NamedTempFile::new().unwrap();
        let file = log_file.reopen().unwrap();
        let layer = writing_to(move || file.try_clone().unwrap(), json, false, parse(filter).unwrap(), quiet.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        std::fs::read_to_string(log_file.path()).unwrap()
    }

    fn in_a_span() {
        let span = tracing::info_span!("claim", pool = "default");
        let _entered = span.enter();
        tracing::info!(calls = 3, "granted");
        tracing::debug!("not by default");
    }

    #[test]
    fn a_json_line_has_the_fields_and_the_span() {
        let text = written(true, "info", in_a_span);
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in [r#""level":"INFO""#, r#""calls":3"#, r#""message":"granted""#, r#""pool":"default""#] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_text_line_is_plain_where_there_is_no_terminal() {
        let text = written(false, "debug", in_a_span);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("claim{pool=\"default\"}") && text.contains("granted calls=3"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_warning_that_repeats_is_one_line_a_minute_whatever_its_numbers_are() {
        let told = [" failed=1 hidden=601\n", ",\"hidden\":601}\n"];
        for (json, told) in [false, true].into_iter().zip(told) {
            let quiet = Quiet::default();
            let written = written_by(&quiet, json, "info", || {
                let fails = |failed: u32| tracing::warn!(error = %"no answer", failed, "Failed to publish jobs");
                for n in 0..602 {
                    fails(n);
                    tracing::info!(n, "counts");
                }
                for peer in ["a", "b"] {
                    tracing::warn!(peer, "refused");
                }
                quiet.wait();
                fails(1);
            });
            let count = |text: &str| written.lines().filter(|line| line.contains(text)).count();
            assert_eq!((count("no answer"), count("counts"), count("refused")), (2, 602, 2));
            assert!(written.contains(told), "{written}");
            assert!(!json || written.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        }
    }

    #[test]
    fn a_line_shows_what_a_terminal_would_obey() {
        for json in [false, true] {
            let written = written(json, "info", || {
                let text = "\u{1b}[2J\u{202e}\u{9b}\u{7f}\r";
                tracing::info!(%text, quoted = text, "message {text}");
            });
            assert!(written.contains("202e") && !written.contains(crate::is_obeyed), "{written:?}");
        }
    }

    #[test]
    fn a_value_does_not_write_a_line_of_its_own() {
        let forged = "no\n2026-11-28T00:00:00Z  WARN redial: All is lost";
        for json in [false, true] {
            let written = written(json, "info", || {
                let span = tracing::info_span!("call", tool = %forged);
                span.in_scope(|| tracing::warn!(error = %forged, quoted = forged, "Failed: {forged}"));
            });
            assert_eq!(written.lines().count(), 1, "{written}");
            assert!(written.ends_with('\n') && written.matches(r"no\n2026").count() == 4, "{written}");
        }
    }

    #[test]
    fn a_bad_setting_names_itself_and_what_is_allowed() {
        let error = "xml".parse::<LogFormat>().unwrap_err().to_string();
        assert_eq!(error, r#"log format "xml"; allowed: auto, text, json"#);
    }
}
