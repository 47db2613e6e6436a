//! Export of traces and metrics to an OpenTelemetry collector: OTLP over HTTP, in protobuf.
//!
//! Spans are built from run events, so the protobuf messages are the only dependency on the
//! OpenTelemetry crates. A slow or absent collector never delays a request: if the queue is full,
//! spans are dropped and counted.

mod attributes;
mod exporter;
mod metrics;
mod spans;
mod trace_context;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use querymend_net::{EnvLookup, Error, Secret};
use reqwest::Url;
use tokio::sync::{mpsc, oneshot};

use self::exporter::{CollectorClient, ExportJob};
use crate::service::Service;

/// Maximum number of questions with spans in the queue. Further ones are dropped.
const MAX_QUEUED_BATCHES: usize = 2_048;

/// Settings of the exporter.
#[derive(Debug, Clone)]
pub struct OtlpSettings {
    /// Base URL of the collector.
    address: Url,
    /// Additional headers of every request, such as a token.
    headers: Vec<(String, Secret)>,
    /// CA certificates to trust in addition to the system's.
    ca_file: Option<PathBuf>,
    /// Resource attributes of this server.
    resource: BTreeMap<String, String>,
    /// `true` if spans include the text of questions and queries. Off by default, because they may
    /// contain restricted data.
    pub capture_content: bool,
    /// Interval between metric exports.
    pub export_interval: Duration,
    /// Timeout of a request to the collector.
    pub timeout: Duration,
}

impl OtlpSettings {
    /// Creates the settings for a collector at an address such as `http://127.0.0.1:4318`.
    pub fn new(address: &str) -> Result<Self, Error> {
        let hint = "use the form http://127.0.0.1:4318, with secrets in OTEL_EXPORTER_OTLP_HEADERS";
        let wrong = |why: &str| Error::new(format!("invalid collector address: {why}"), hint);
        let address = Url::parse(address.trim()).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&address.scheme()) || address.host_str().is_none() {
            return Err(wrong("it is not an http or https URL"));
        }
        if !address.username().is_empty() || address.password().is_some() || address.query().is_some() {
            return Err(wrong("it contains credentials or a query string"));
        }
        let resource = [
            ("service.name", "querymend".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", querymend::trace_id()),
        ];
        Ok(Self {
            address,
            headers: Vec::new(),
            ca_file: None,
            resource: resource.map(|(name, value)| (name.to_owned(), value)).into(),
            capture_content: false,
            export_interval: Duration::from_secs(60),
            timeout: exporter::DEFAULT_TIMEOUT,
        })
    }

    /// Applies the standard OpenTelemetry environment variables.
    ///
    /// These are `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`,
    /// `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_METRIC_EXPORT_INTERVAL`
    /// (milliseconds) and `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` (`true` includes
    /// questions and queries in spans).
    pub fn with_env(mut self, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let pairs = |name: &str| {
            let text = variables(name).unwrap_or_default();
            let parts = text.split(',').filter(|part| !part.trim().is_empty()).map(|part| {
                let (key, value) = part.split_once('=')?;
                let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
                Some((key.trim().to_owned(), value.into_owned()))
            });
            // The value is not shown, because it may contain a token.
            let wrong = || Error::new(format!("cannot parse {name}"), "use the form name=value,name=value");
            parts.collect::<Option<Vec<_>>>().ok_or_else(wrong)
        };
        self.resource.extend(pairs("OTEL_RESOURCE_ATTRIBUTES")?);
        if let Some(name) = variables("OTEL_SERVICE_NAME") {
            self.resource.insert("service.name".to_owned(), name);
        }
        let headers = pairs("OTEL_EXPORTER_OTLP_HEADERS")?;
        self.headers.extend(headers.into_iter().map(|(name, value)| (name, Secret(value))));
        self.ca_file = variables("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from);
        if let Some(every) = variables("OTEL_METRIC_EXPORT_INTERVAL") {
            let wrong = |_| Error::new("OTEL_METRIC_EXPORT_INTERVAL is not a number", "set it in milliseconds");
            self.export_interval = Duration::from_millis(every.trim().parse::<u64>().map_err(wrong)?.max(100));
        }
        self.capture_content = variables("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
            .is_some_and(|text| text.eq_ignore_ascii_case("true"));
        Ok(self)
    }

    fn resource(&self) -> Resource {
        let attributes: Vec<KeyValue> =
            self.resource.iter().map(|(name, value)| attributes::text(name, value.as_str())).collect();
        Resource { attributes, ..Resource::default() }
    }
}

fn scope() -> InstrumentationScope {
    let (name, version) = ("querymend".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    InstrumentationScope { name, version, ..InstrumentationScope::default() }
}

/// Number of items that did not reach the collector.
#[derive(Debug, Default)]
struct DroppedCounts {
    spans: AtomicU64,
    metrics: AtomicU64,
}

/// Exports questions, corrections and runs to a collector. Clones share one queue.
#[derive(Clone)]
pub struct OtlpExporter {
    queue: mpsc::Sender<ExportJob>,
    dropped: Arc<DroppedCounts>,
    /// Service that provides the exported metrics.
    service: Arc<OnceLock<Weak<Service>>>,
    capture_content: bool,
}

impl OtlpExporter {
    /// Starts the exporter. Must be called within a Tokio runtime.
    pub fn start(settings: &OtlpSettings) -> Result<Self, Error> {
        let (work, jobs) = mpsc::channel(MAX_QUEUED_BATCHES);
        let dropped = Arc::<DroppedCounts>::default();
        let service = Arc::<OnceLock<Weak<Service>>>::default();
        let collector = CollectorClient::new(settings, Arc::clone(&dropped), Arc::clone(&service))?;
        tokio::spawn(collector.run(jobs, settings.export_interval));
        Ok(Self { queue: work, dropped, service, capture_content: settings.capture_content })
    }

    /// Exports the metrics of a service in addition to spans.
    pub fn export_metrics_of(&self, service: &Arc<Service>) {
        self.service.set(Arc::downgrade(service)).ok();
    }

    /// Flushes queued spans and exports the metrics once more, within `timeout`.
    ///
    /// Returns whether it completed in time.
    pub async fn shut_down(&self, timeout: Duration) -> bool {
        let (done, over) = oneshot::channel();
        let flush = async { self.queue.send(ExportJob::Close(done)).await.is_ok() && over.await.is_ok() };
        tokio::time::timeout(timeout, flush).await.unwrap_or(false)
    }

    /// Queues the spans of one question.
    fn send(&self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        if self.queue.try_send(ExportJob::Spans(spans)).is_err() {
            self.dropped.spans.fetch_add(count, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_endpoints_with_secrets_without_repeating_them() {
        for wrong in
            ["collector:4318", "file:///x", "http://", "http://me:hunter2@host:4318", "http://host?token=hunter2"]
        {
            let error =
                OtlpSettings::new(wrong).err().map(|error| format!("{error} {}", error.hint)).unwrap_or_default();
            assert!(!error.is_empty() && !error.contains("hunter2"), "{wrong}: {error}");
        }
        assert!(OtlpSettings::new("https://collector.example/otlp").is_ok());
    }

    #[test]
    fn reads_opentelemetry_variables() -> Result<(), Error> {
        let variables = |name: &str| match name {
            "OTEL_SERVICE_NAME" => Some("sales".to_owned()),
            "OTEL_RESOURCE_ATTRIBUTES" => Some("deployment.environment.name=test, team=a%2Cb".to_owned()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("authorization=Bearer%20hunter2".to_owned()),
            _ => None,
        };
        let settings = OtlpSettings::new("http://127.0.0.1:4318")?.with_env(&variables)?;
        assert_eq!(settings.resource.get("service.name").map(String::as_str), Some("sales"));
        assert_eq!(settings.resource.get("team").map(String::as_str), Some("a,b"));
        assert_eq!(settings.headers, [("authorization".to_owned(), Secret("Bearer hunter2".to_owned()))]);
        assert!(!format!("{settings:?}").contains("hunter2") && !settings.capture_content);
        let broken = |name: &str| (name == "OTEL_EXPORTER_OTLP_HEADERS").then(|| "hunter2".to_owned());
        let error = OtlpSettings::new("http://127.0.0.1:4318")?.with_env(&broken).err();
        assert!(error.is_some_and(|error| !error.to_string().contains("hunter2")));
        Ok(())
    }
}
