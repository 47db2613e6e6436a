//! Traces and figures for a collector, as OpenTelemetry sends them: OTLP over HTTP, in protobuf.
//!
//! Spans are made from the events that every face hears, so the messages of the protocol are all that is taken from its makers. A
//! collector that is slow or away costs a request nothing: what cannot wait in line any longer is dropped and counted.

mod attributes;
mod figures;
mod parent;
mod send;
mod spans;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use querymend_net::{Error, Secret, Variables};
use reqwest::Url;
use tokio::sync::{mpsc, oneshot};

use self::send::{Collector, Job};
use crate::service::Service;

/// Questions whose spans wait to be sent. More are dropped.
const WAITING: usize = 2_048;

/// Where traces and figures go, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The collector.
    address: Url,
    /// What every request to it says besides, such as a token.
    headers: Vec<(String, Secret)>,
    /// Certificates that are trusted beside the usual ones.
    ca_file: Option<PathBuf>,
    /// What is said about this server.
    resource: BTreeMap<String, String>,
    /// Questions and queries are part of spans too. They may hold what only some may read, so nobody gets them unasked.
    pub texts: bool,
    /// How often figures are sent.
    pub every: Duration,
    /// Longest time that the collector may take to answer.
    pub timeout: Duration,
}

impl Settings {
    /// For a collector at this address, such as `http://127.0.0.1:4318`.
    pub fn new(address: &str) -> Result<Self, Error> {
        let hint = "write it as http://127.0.0.1:4318; secrets go into OTEL_EXPORTER_OTLP_HEADERS";
        let wrong = |why: &str| Error::new(format!("the address of the collector cannot be taken: {why}"), hint);
        let address = Url::parse(address.trim()).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&address.scheme()) || address.host_str().is_none() {
            return Err(wrong("it is no http or https address"));
        }
        if !address.username().is_empty() || address.password().is_some() || address.query().is_some() {
            return Err(wrong("it says more than a server and a path"));
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
            texts: false,
            every: Duration::from_secs(60),
            timeout: send::PATIENCE,
        })
    }

    /// With what OpenTelemetry's own variables say: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`,
    /// `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_METRIC_EXPORT_INTERVAL` (milliseconds) and
    /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` (`true` lets questions and queries be part of spans).
    pub fn with_variables(mut self, variables: Variables<'_>) -> Result<Self, Error> {
        let pairs = |name: &str| {
            let text = variables(name).unwrap_or_default();
            let parts = text.split(',').filter(|part| !part.trim().is_empty()).map(|part| {
                let (key, value) = part.split_once('=')?;
                let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
                Some((key.trim().to_owned(), value.into_owned()))
            });
            // The text is not repeated: it may hold a token.
            let wrong = || Error::new(format!("{name} cannot be read"), "write it as name=value,name=value");
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
            let wrong = |_| Error::new("OTEL_METRIC_EXPORT_INTERVAL is no number", "it is in milliseconds");
            self.every = Duration::from_millis(every.trim().parse::<u64>().map_err(wrong)?.max(100));
        }
        self.texts = variables("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
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

/// What did not reach the collector.
#[derive(Debug, Default)]
struct Dropped {
    spans: AtomicU64,
    figures: AtomicU64,
}

/// Sends what happens to a collector. It hears questions, corrections and runs. Clones are the same.
#[derive(Clone)]
pub struct Otlp {
    work: mpsc::Sender<Job>,
    dropped: Arc<Dropped>,
    /// The server whose figures are sent.
    service: Arc<OnceLock<Weak<Service>>>,
    texts: bool,
}

impl Otlp {
    /// Begins to send. Needs a running tokio.
    pub fn start(settings: &Settings) -> Result<Self, Error> {
        let (work, jobs) = mpsc::channel(WAITING);
        let dropped = Arc::<Dropped>::default();
        let service = Arc::<OnceLock<Weak<Service>>>::default();
        let collector = Collector::new(settings, Arc::clone(&dropped), Arc::clone(&service))?;
        tokio::spawn(collector.work(jobs, settings.every));
        Ok(Self { work, dropped, service, texts: settings.texts })
    }

    /// From now on the figures of this server are sent too.
    pub fn measure(&self, service: &Arc<Service>) {
        self.service.set(Arc::downgrade(service)).ok();
    }

    /// Sends what still waits, and the figures once more; no longer than `patience`. Says whether there was time for it.
    pub async fn close(&self, patience: Duration) -> bool {
        let (done, over) = oneshot::channel();
        let flush = async { self.work.send(Job::Close(done)).await.is_ok() && over.await.is_ok() };
        tokio::time::timeout(patience, flush).await.unwrap_or(false)
    }

    /// Puts the spans of one question in line.
    fn send(&self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        if self.work.try_send(Job::Spans(spans)).is_err() {
            self.dropped.spans.fetch_add(count, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l11_an_address_that_holds_a_secret_is_not_taken_and_not_repeated() {
        for wrong in
            ["collector:4318", "file:///x", "http://", "http://me:hunter2@host:4318", "http://host?token=hunter2"]
        {
            let error = Settings::new(wrong).err().map(|error| format!("{error} {}", error.hint)).unwrap_or_default();
            assert!(!error.is_empty() && !error.contains("hunter2"), "{wrong}: {error}");
        }
        assert!(Settings::new("https://collector.example/otlp").is_ok());
    }

    #[test]
    fn l11_variables_of_opentelemetry_are_read() -> Result<(), Error> {
        let variables = |name: &str| match name {
            "OTEL_SERVICE_NAME" => Some("sales".to_owned()),
            "OTEL_RESOURCE_ATTRIBUTES" => Some("deployment.environment.name=test, team=a%2Cb".to_owned()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("authorization=Bearer%20hunter2".to_owned()),
            _ => None,
        };
        let settings = Settings::new("http://127.0.0.1:4318")?.with_variables(&variables)?;
        assert_eq!(settings.resource.get("service.name").map(String::as_str), Some("sales"));
        assert_eq!(settings.resource.get("team").map(String::as_str), Some("a,b"));
        assert_eq!(settings.headers, [("authorization".to_owned(), Secret("Bearer hunter2".to_owned()))]);
        assert!(!format!("{settings:?}").contains("hunter2") && !settings.texts);
        let broken = |name: &str| (name == "OTEL_EXPORTER_OTLP_HEADERS").then(|| "hunter2".to_owned());
        let error = Settings::new("http://127.0.0.1:4318")?.with_variables(&broken).err();
        assert!(error.is_some_and(|error| !error.to_string().contains("hunter2")));
        Ok(())
    }
}
