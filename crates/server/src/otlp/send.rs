//! The connection to a collector: spans in batches, figures now and then.

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

use super::{Dropped, Settings, figures, scope};
use crate::service::Service;

/// Spans of one request, and how long the first of them waits for others.
const BATCH: usize = 512;
const LINGER: Duration = Duration::from_secs(1);
/// The longest that a collector may take, unless its settings say otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(3);
/// How often something is sent again, and how long is waited before.
const AGAIN: u32 = 2;
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// An answer of a collector is read no further than this.
const ANSWER_BYTES: usize = 64 << 10;

/// What is to be done.
pub enum Job {
    /// Send these.
    Spans(Vec<Span>),
    /// Send what is there, and end.
    Close(oneshot::Sender<()>),
}

/// The collector.
pub struct Collector {
    client: Client,
    traces: Url,
    metrics: Url,
    headers: HeaderMap,
    resource: Resource,
    dropped: Arc<Dropped>,
    service: Arc<OnceLock<Weak<Service>>>,
    /// It did not take what was sent last. That is said once, and not for every batch.
    away: bool,
}

/// What became of a request.
enum Sent {
    /// It was taken, with this answer.
    Taken(Vec<u8>),
    /// It may be taken later.
    Later(Option<Duration>, String),
    /// It will not be taken.
    Never(String),
}

impl Collector {
    pub fn new(
        settings: &Settings,
        dropped: Arc<Dropped>,
        service: Arc<OnceLock<Weak<Service>>>,
    ) -> Result<Self, Error> {
        let host = settings.address.host_str().unwrap_or_default();
        let client = http::client(host, settings.ca_file.as_deref(), CONNECT)?.timeout(settings.timeout);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, secret) in &settings.headers {
            let wrong =
                || Error::new("OTEL_EXPORTER_OTLP_HEADERS cannot be sent", "names and values are plain letters");
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
            client: client.build().map_err(|why| tls::broken(&why.without_url()))?,
            traces: at("/v1/traces"),
            metrics: at("/v1/metrics"),
            headers,
            resource: settings.resource(),
            dropped,
            service,
            away: false,
        })
    }

    /// Sends until it is told to end, or nobody is left who could send anything.
    pub async fn work(mut self, mut jobs: mpsc::Receiver<Job>, every: Duration) {
        let mut waiting: Vec<Span> = Vec::new();
        let start = tokio::time::Instant::now();
        let (mut soon, mut now_and_then) = (interval_at(start + LINGER, LINGER), interval_at(start + every, every));
        soon.set_missed_tick_behavior(MissedTickBehavior::Delay);
        now_and_then.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(Job::Spans(spans)) => {
                        waiting.extend(spans);
                        if waiting.len() >= BATCH {
                            self.send_spans(&mut waiting).await;
                        }
                    }
                    Some(Job::Close(done)) => {
                        self.send_spans(&mut waiting).await;
                        self.send_figures().await;
                        done.send(()).ok();
                        return;
                    }
                    None => return self.send_spans(&mut waiting).await,
                },
                _ = soon.tick() => self.send_spans(&mut waiting).await,
                _ = now_and_then.tick() => self.send_figures().await,
            }
        }
    }

    async fn send_spans(&mut self, waiting: &mut Vec<Span>) {
        if waiting.is_empty() {
            return;
        }
        let spans = std::mem::take(waiting);
        let count = spans.len() as u64;
        let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
        let resource_spans =
            vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans, ..ResourceSpans::default() }];
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let lost = match self.send(self.traces.clone(), body).await {
            Some(answer) => {
                let answer = ExportTraceServiceResponse::decode(answer.as_slice()).unwrap_or_default();
                answer.partial_success.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0))
            }
            None => count,
        };
        self.dropped.spans.fetch_add(lost, Ordering::Relaxed);
    }

    async fn send_figures(&mut self) {
        let Some(service) = self.service.get().and_then(Weak::upgrade) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let metrics = figures::messages(&service.measured(), service.metrics().started() * 1_000_000_000, now);
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
            self.dropped.figures.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Sends something, again if that may help. Gives back the answer of a collector that took it.
    async fn send(&mut self, url: Url, body: Vec<u8>) -> Option<Vec<u8>> {
        let mut tries = 0;
        let why = loop {
            match self.once(url.clone(), body.clone()).await {
                Sent::Taken(answer) => {
                    if std::mem::take(&mut self.away) {
                        tracing::info!("the collector takes traces and figures again");
                    }
                    return Some(answer);
                }
                Sent::Later(wait, _) if tries < AGAIN => {
                    tries += 1;
                    sleep(wait.unwrap_or(PAUSE * tries).min(LONGEST_PAUSE)).await;
                }
                Sent::Later(_, why) | Sent::Never(why) => break why,
            }
        };
        if !std::mem::replace(&mut self.away, true) {
            tracing::warn!(why, "the collector takes no traces and figures; what it does not take is dropped");
        }
        None
    }

    async fn once(&self, url: Url, body: Vec<u8>) -> Sent {
        let sent = self.client.post(url).headers(self.headers.clone()).body(body).send().await;
        let mut response = match sent {
            Ok(response) => response,
            // It had its time.
            Err(why) if why.is_timeout() => return Sent::Never("it did not answer in time".to_owned()),
            Err(why) => return Sent::Later(None, why.without_url().to_string()),
        };
        let status = response.status();
        if status.is_success() {
            let mut answer = Vec::new();
            while let Ok(Some(piece)) = response.chunk().await {
                answer.extend_from_slice(&piece);
                if answer.len() > ANSWER_BYTES {
                    break;
                }
            }
            return Sent::Taken(answer);
        }
        let why = format!("it answered {status}");
        // These mean that it is busy; all others that it will not take it later either.
        if [429, 502, 503, 504].contains(&status.as_u16()) {
            let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            return Sent::Later(wait.map(Duration::from_secs), why);
        }
        Sent::Never(why)
    }
}
