//! The exporters: OTLP over HTTP with a blocking client, because the SDK exports on its own threads, where an async client
//! would make no progress.

use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    metrics::SdkMeterProvider,
    resource::{EnvResourceDetector, ResourceDetector},
    trace::SdkTracerProvider,
};
use reqwest::blocking::Client;

use crate::{
    TelemetryConfig, TelemetryError,
    settings::{self, Names, Target},
};

/// Signals that go through a proxy, each with the variable that names it.
pub(crate) type Proxies = Vec<(&'static str, &'static str)>;

/// Sends spans to the collector, in batches. The sampler is that of `OTEL_TRACES_SAMPLER`, the parent's decision by
/// default.
pub(crate) fn tracer_provider(
    config: &TelemetryConfig,
    proxies: &mut Proxies,
) -> Result<SdkTracerProvider, TelemetryError> {
    let client = client(&settings::TRACES, "traces", proxies)?;
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| failed("traces", &error))?;
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource(config)).build())
}

/// Sends metrics to the collector, once a minute (`OTEL_METRIC_EXPORT_INTERVAL`).
pub(crate) fn meter_provider(
    config: &TelemetryConfig,
    proxies: &mut Proxies,
) -> Result<SdkMeterProvider, TelemetryError> {
    let client = client(&settings::METRICS, "metrics", proxies)?;
    let exporter = MetricExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| failed("metrics", &error))?;
    Ok(SdkMeterProvider::builder().with_periodic_exporter(exporter).with_resource(resource(config)).build())
}

fn failed(signal: &'static str, error: &ExporterBuildError) -> TelemetryError {
    TelemetryError::Exporter { signal, reason: error.to_string() }
}

/// Builds the client on a new thread: a blocking client starts its own runtime, which panics on a thread that is inside
/// one. `proxies` learns which variable's proxy the signal goes through.
fn client(names: &Names, signal: &'static str, proxies: &mut Proxies) -> Result<Client, TelemetryError> {
    let variable = |name: &str| std::env::var(name).ok();
    let target = Target::read(names, variable);
    let build = move || {
        let url = target.url.as_ref();
        redial_http::blocking(url, target.has_secret, target.timeout, variable)
    };
    let reason = match std::thread::spawn(build).join() {
        Ok(Ok((client, proxy))) => {
            proxies.extend(proxy.map(|variable| (signal, variable)));
            return Ok(client);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the HTTP client panicked".to_owned(),
    };
    Err(TelemetryError::Exporter { signal, reason })
}

/// Describes this process. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` override it.
fn resource(config: &TelemetryConfig) -> Resource {
    let set = EnvResourceDetector::new().detect();
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
    let own = [
        ("service.name", config.service.to_owned()),
        ("service.instance.id", config.instance.clone()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let missing = own.into_iter().filter(|(key, _)| {
        let by_operator = named && *key == "service.name";
        !by_operator && set.get(&Key::from_static_str(key)).is_none()
    });
    Resource::builder().with_attributes(missing.map(|(key, value)| KeyValue::new(key, value))).build()
}
