//! Start and end of telemetry.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry::{global, metrics::MeterProvider, trace::TracerProvider};
use opentelemetry_sdk::{error::OTelSdkResult, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use tracing::{Level, Metadata, info, warn};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, dynamic_filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::{TelemetryConfig, TelemetryError, logs, metrics, names, otlp, settings};

static TRACING: AtomicBool = AtomicBool::new(false);

/// True if traces are exported. Hot paths need no span per call otherwise.
pub fn is_exporting() -> bool {
    TRACING.load(Ordering::Relaxed)
}

/// The exporters that [`init`] started. Keep it until the process ends, then call [`Telemetry::shutdown`].
#[must_use = "telemetry that was not exported yet is lost without shutdown()"]
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

/// Starts logs, and traces and metrics if the `OTEL_*` variables ask for them. Once per process, before the first span;
/// inside or outside of a runtime.
pub fn init(config: &TelemetryConfig) -> Result<Telemetry, TelemetryError> {
    redial_http::install_crypto();
    let mut layers = logs::layers(config)?;
    let signals = settings::signals(|name| std::env::var(name).ok())?;
    let mut proxies = Vec::new();
    let traces = signals.traces.then(|| otlp::tracer_provider(config, &mut proxies)).transpose()?;
    let metrics = signals.metrics.then(|| otlp::meter_provider(config, &mut proxies)).transpose()?;
    layers.extend(traces.as_ref().map(spans));
    tracing_subscriber::registry().with(layers).try_init().map_err(|_| TelemetryError::AlreadyStarted)?;
    TRACING.store(traces.is_some(), Ordering::Relaxed);
    for (signal, variable) in proxies {
        info!(signal, variable, "Telemetry goes through a proxy");
    }
    if let Some(provider) = &metrics {
        // Global too, for the instruments of tool authors.
        global::set_meter_provider(provider.clone());
        metrics::enable(&provider.meter(names::SCOPE));
    }
    Ok(Telemetry { traces, metrics })
}

/// Records Redial's own spans, of level info and above. The HTTP client's spans would otherwise describe the export
/// itself.
///
/// The filter is dynamic: it is evaluated for each span. With a cached answer, the last answer on the thread would
/// count: a library that only asks whether its debug lines are enabled (rustls and sqlx do) would disable the next
/// span.
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
    /// Exports the rest, for at most 5 s, on threads that may block. A failed export is logged, and its data lost.
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
            warn!(signal, %error, "Failed to export the last telemetry");
        }
    })
}
