//! Start and end of telemetry.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry::{global, metrics::MeterProvider, trace::TracerProvider};
use opentelemetry_sdk::{error::OTelSdkResult, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use tracing::{Level, Metadata, warn};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, dynamic_filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::{LogFormat, TelemetryError, install_crypto, logs, metrics, names, otlp, settings};

/// How this process logs, and who it is.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// `service.name` of what is exported, unless `OTEL_SERVICE_NAME` says otherwise; for example `redial-worker`.
    pub service: &'static str,
    /// `service.instance.id`: tells the processes of one service apart.
    pub instance: String,
    /// How log lines look.
    pub format: LogFormat,
    /// What is logged, as directives of `EnvFilter`: `info`, or `info,redial_worker=debug`. Default: `info`. Traces do
    /// not depend on it.
    pub filter: String,
}

impl TelemetryConfig {
    /// Info level, text on a terminal and JSON elsewhere.
    pub fn new(service: &'static str, instance: impl Into<String>) -> Self {
        Self { service, instance: instance.into(), format: LogFormat::Auto, filter: "info".to_owned() }
    }
}

static TRACING: AtomicBool = AtomicBool::new(false);

/// True if traces are exported. Hot paths need no span per call otherwise.
pub fn is_exporting() -> bool {
    TRACING.load(Ordering::Relaxed)
}

/// What [`init`] started. Keep it until the process ends, then call [`Telemetry::shutdown`].
#[must_use = "what was not exported yet is lost without shutdown()"]
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

/// Starts logs, and traces and metrics if the `OTEL_*` variables ask for them. Once per process, before the first span;
/// inside or outside of a runtime.
pub fn init(config: &TelemetryConfig) -> Result<Telemetry, TelemetryError> {
    install_crypto();
    let logs = logs::layer(config.format, &config.filter)?;
    let signals = settings::signals(|name| std::env::var(name).ok())?;
    let traces = signals.traces.then(|| otlp::tracer_provider(config)).transpose()?;
    let metrics = signals.metrics.then(|| otlp::meter_provider(config)).transpose()?;
    let spans = traces.as_ref().map(spans);
    let layers: Vec<_> = [Some(logs), spans].into_iter().flatten().collect();
    tracing_subscriber::registry().with(layers).try_init().map_err(|_| TelemetryError::AlreadyStarted)?;
    TRACING.store(traces.is_some(), Ordering::Relaxed);
    if let Some(provider) = &metrics {
        // Global too, for what tool authors count themselves.
        global::set_meter_provider(provider.clone());
        metrics::enable(&provider.meter(names::SCOPE));
    }
    Ok(Telemetry { traces, metrics })
}

/// Redial's own spans, of level info and above. Those of the HTTP client would otherwise describe the export itself.
///
/// The filter is dynamic, which means: asked for each span. A filter whose answers are remembered would not be asked, and
/// the last answer on the thread would count: a library that only asks whether its own debug lines are wanted (rustls and
/// sqlx do) would switch the next span off.
fn spans(provider: &SdkTracerProvider) -> Box<dyn Layer<Registry> + Send + Sync> {
    let own = |metadata: &Metadata<'_>| *metadata.level() <= Level::INFO && metadata.target().starts_with("redial");
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(names::SCOPE))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(dynamic_filter_fn(move |metadata, _| own(metadata)).with_max_level_hint(LevelFilter::INFO))
        .boxed()
}

/// How long the last export may take. The SDK's own limit for metrics is the same and cannot be changed.
const LAST_EXPORT: Duration = Duration::from_secs(5);

impl Telemetry {
    /// Sends what is left, for at most 5 s, on threads that may block. What could not be sent is logged and lost.
    pub async fn shutdown(self) {
        TRACING.store(false, Ordering::Relaxed);
        let Self { traces, metrics } = self;
        let traces = traces.map(|provider| ending("traces", move || provider.shutdown_with_timeout(LAST_EXPORT)));
        let metrics = metrics.map(|provider| ending("metrics", move || provider.shutdown_with_timeout(LAST_EXPORT)));
        for ending in [traces, metrics].into_iter().flatten() {
            // The only error is a panic of the SDK, and the process is about to end.
            let _ = ending.await;
        }
    }
}

fn ending(
    signal: &'static str,
    shutdown: impl FnOnce() -> OTelSdkResult + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = shutdown() {
            warn!(signal, %error, "the last telemetry was not exported");
        }
    })
}
