//! Collector client: exports spans in batches and metrics at an interval.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use querymend_net::{Error, http, tls};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Url};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval_at, sleep};

use super::{DroppedCounts, OtlpSettings, metrics, scope};
use crate::service::Service;

/// Number of queued spans that triggers an export. Smaller batches are exported after
/// `BATCH_INTERVAL`.
const BATCH_SIZE: usize = 512;
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of a request to the collector if the settings do not specify one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of retries, with linear back-off.
const MAX_RETRIES: u32 = 2;
const RETRY_BACKOFF: Duration = Duration::from_millis(500);
const MAX_RETRY_BACKOFF: Duration = Duration::from_secs(5);
/// Maximum number of bytes read from a response of the collector.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Job of the export task.
pub enum ExportJob {
    /// Export spans.
    Spans(Vec<Span>),
    /// Flush the queue and stop.
    Close(oneshot::Sender<()>),
}

/// Client of the collector.
pub struct CollectorClient {
    client: Client,
    traces: Url,
    metrics: Url,
    headers: HeaderMap,
    resource: Resource,
    dropped: Arc<DroppedCounts>,
    service: Arc<OnceLock<Weak<Service>>>,
    /// `true` if the last export failed. The failure is logged once and not for every batch.
    is_failing: bool,
}

/// Outcome of an export request.
enum ExportOutcome {
    /// Accepted, with the response body.
    Accepted(Vec<u8>),
    /// Failed but may succeed later: requested delay and reason.
    Retryable(Option<Duration>, String),
    /// Failed permanently.
    Rejected(String),
}

impl CollectorClient {
    pub fn new(
        settings: &OtlpSettings,
        dropped: Arc<DroppedCounts>,
        service: Arc<OnceLock<Weak<Service>>>,
    ) -> Result<Self, Error> {
        let host = settings.address.host_str().unwrap_or_default();
        let client =
            http::client_builder(host, settings.ca_file.as_deref(), CONNECT_TIMEOUT)?.timeout(settings.timeout);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, secret) in &settings.headers {
            let wrong = || {
                Error::new("OTEL_EXPORTER_OTLP_HEADERS contains an invalid header", "names and values must be ASCII")
            };
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(&secret.0).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let at = |path: &str| {
            let mut url = settings.address.clone();
            url.set_path(&format!("{}{path}", settings.address.path().trim_end_matches('/')));
            url
        };
        Ok(Self {
            client: client.build().map_err(|why| tls::tls_error(&why.without_url()))?,
            traces: at("/v1/traces"),
            metrics: at("/v1/metrics"),
            headers,
            resource: settings.resource(),
            dropped,
            service,
            is_failing: false,
        })
    }

    /// Exports until it receives [`ExportJob::Close`] or all senders are dropped.
    pub async fn run(mut self, mut jobs: mpsc::Receiver<ExportJob>, export_interval: Duration) {
        let mut pending: Vec<Span> = Vec::new();
        let start = tokio::time::Instant::now();
        let (mut batch_tick, mut metrics_tick) = (
            interval_at(start + BATCH_INTERVAL, BATCH_INTERVAL),
            interval_at(start + export_interval, export_interval),
        );
        batch_tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        metrics_tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(ExportJob::Spans(spans)) => {
                        pending.extend(spans);
                        if pending.len() >= BATCH_SIZE {
                            self.send_spans(&mut pending).await;
                        }
                    }
                    Some(ExportJob::Close(done)) => {
                        self.send_spans(&mut pending).await;
                        self.send_metrics().await;
                        done.send(()).ok();
                        return;
                    }
                    None => return self.send_spans(&mut pending).await,
                },
                _ = batch_tick.tick() => self.send_spans(&mut pending).await,
                _ = metrics_tick.tick() => self.send_metrics().await,
            }
        }
    }

    async fn send_spans(&mut self, pending: &mut Vec<Span>) {
        if pending.is_empty() {
            return;
        }
        let spans = std::mem::take(pending);
        let count = spans.len() as u64;
        let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
        let resource_spans =
            vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans, ..ResourceSpans::default() }];
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let dropped = match self.send(self.traces.clone(), body).await {
            Some(answer) => {
                let answer = ExportTraceServiceResponse::decode(answer.as_slice()).unwrap_or_default();
                answer.partial_success.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0))
            }
            None => count,
        };
        self.dropped.spans.fetch_add(dropped, Ordering::Relaxed);
    }

    async fn send_metrics(&mut self) {
        let Some(service) = self.service.get().and_then(Weak::upgrade) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let metrics =
            metrics::to_otlp_metrics(&service.metric_snapshots(), service.metrics().started_at() * 1_000_000_000, now);
        drop(service);
        let count = metrics.len() as u64;
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() }];
        let resource_metrics = vec![ResourceMetrics {
            resource: Some(self.resource.clone()),
            scope_metrics,
            ..ResourceMetrics::default()
        }];
        let body = ExportMetricsServiceRequest { resource_metrics }.encode_to_vec();
        if self.send(self.metrics.clone(), body).await.is_none() {
            self.dropped.metrics.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Sends a request with retries, and returns the response body if the collector accepted it.
    async fn send(&mut self, url: Url, body: Vec<u8>) -> Option<Vec<u8>> {
        let mut tries = 0;
        let why = loop {
            match self.send_once(url.clone(), body.clone()).await {
                ExportOutcome::Accepted(answer) => {
                    if std::mem::take(&mut self.is_failing) {
                        tracing::info!("telemetry export recovered");
                    }
                    return Some(answer);
                }
                ExportOutcome::Retryable(wait, _) if tries < MAX_RETRIES => {
                    tries += 1;
                    sleep(wait.unwrap_or(RETRY_BACKOFF * tries).min(MAX_RETRY_BACKOFF)).await;
                }
                ExportOutcome::Retryable(_, why) | ExportOutcome::Rejected(why) => break why,
            }
        };
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(why, "telemetry export failed; undelivered items are dropped");
        }
        None
    }

    async fn send_once(&self, url: Url, body: Vec<u8>) -> ExportOutcome {
        let sent = self.client.post(url).headers(self.headers.clone()).body(body).send().await;
        let mut response = match sent {
            Ok(response) => response,
            // A timeout has already used up the time budget and is not retried.
            Err(why) if why.is_timeout() => return ExportOutcome::Rejected("the request timed out".to_owned()),
            Err(why) => return ExportOutcome::Retryable(None, why.without_url().to_string()),
        };
        let status = response.status();
        if status.is_success() {
            let mut answer = Vec::new();
            while let Ok(Some(piece)) = response.chunk().await {
                answer.extend_from_slice(&piece);
                if answer.len() > MAX_RESPONSE_BYTES {
                    break;
                }
            }
            return ExportOutcome::Accepted(answer);
        }
        let why = format!("the collector responded with {status}");
        // Temporary overload; any other status is permanent.
        if [429, 502, 503, 504].contains(&status.as_u16()) {
            let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            return ExportOutcome::Retryable(wait.map(Duration::from_secs), why);
        }
        ExportOutcome::Rejected(why)
    }
}
