//! Metrics by name and labels.
//!
//! Each server has its own instances: there is no process-wide registry that two servers would
//! share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Maximum number of series per metric. Further series are aggregated, so that a label of unbounded
/// cardinality cannot exhaust memory.
const MAX_SERIES: usize = 1_000;
/// Label value of the series that aggregates the overflow.
const OVERFLOW_LABEL: &str = "other";
/// Separator of label values in series keys.
const LABEL_SEPARATOR: char = '\u{1f}';

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Monotonically increasing value.
    Counter,
    /// Value that can go up and down.
    Gauge,
    /// Distribution of observed values over buckets.
    Histogram,
}

/// Description of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricDesc {
    /// Name in Prometheus notation.
    pub name: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Type of the metric.
    pub kind: MetricKind,
    /// Label names.
    pub labels: &'static [&'static str],
}

/// Upper bounds of histogram buckets, in seconds.
///
/// They range from the latency of a cached answer to the longest wait of a patient user.
pub const DURATION_BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// A metric with its series.
pub struct Metric {
    /// Description of the metric.
    pub desc: MetricDesc,
    series: RwLock<HashMap<String, Arc<Series>>>,
}

/// One series of a metric.
pub struct Series {
    labels: Vec<String>,
    /// Value of a counter or gauge, or sum of a histogram, as the bits of an `f64`.
    value: AtomicU64,
    /// Number of values in each bucket; the last bucket has no upper bound.
    buckets: Vec<AtomicU64>,
}

/// Snapshot of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct DataPoint {
    /// Label values.
    pub labels: Vec<String>,
    /// Value of a counter or gauge, or sum of a histogram.
    pub value: f64,
    /// Number of values in each bucket; empty unless the metric is a histogram.
    pub buckets: Vec<u64>,
}

/// Snapshot of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSnapshot {
    /// Description of the metric.
    pub desc: MetricDesc,
    /// Snapshots of all series.
    pub points: Vec<DataPoint>,
}

impl Metric {
    /// Creates a metric without series.
    pub fn new(desc: MetricDesc) -> Self {
        Self { desc, series: RwLock::default() }
    }

    /// Returns the series with the given label values, creating it if necessary.
    pub fn with_labels(&self, labels: &[&str]) -> Arc<Series> {
        let key = series_key(labels);
        if let Some(series) = self.series.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(series);
        }
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let full = series.len() >= MAX_SERIES && !series.contains_key(&key);
        let overflow = vec![OVERFLOW_LABEL; labels.len()];
        let (key, labels) = if full { (self::series_key(&overflow), overflow.as_slice()) } else { (key, labels) };
        let buckets = if self.desc.kind == MetricKind::Histogram { DURATION_BUCKETS.len() + 1 } else { 0 };
        let new = || Series {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            value: AtomicU64::new(0f64.to_bits()),
            buckets: (0..buckets).map(|_| AtomicU64::new(0)).collect(),
        };
        Arc::clone(series.entry(key).or_insert_with(|| Arc::new(new())))
    }

    /// Returns a snapshot of all series, sorted by labels.
    pub fn snapshot(&self) -> MetricSnapshot {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut points: Vec<DataPoint> = series.values().map(|series| series.data_point()).collect();
        drop(series);
        points.sort_by(|a, b| a.labels.cmp(&b.labels));
        MetricSnapshot { desc: self.desc, points }
    }
}

fn series_key(labels: &[&str]) -> String {
    let mut key = String::with_capacity(labels.iter().map(|label| label.len() + 1).sum());
    for label in labels {
        key.push_str(label);
        key.push(LABEL_SEPARATOR);
    }
    key
}

impl Series {
    /// Adds an amount to the value.
    pub fn add(&self, amount: f64) {
        let sum = |bits: u64| Some((f64::from_bits(bits) + amount).to_bits());
        self.value.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).ok();
    }

    /// Adds one to the value.
    pub fn increment(&self) {
        self.add(1.0);
    }

    /// Records a value in a histogram.
    pub fn observe(&self, value: f64) {
        let bucket = DURATION_BUCKETS.iter().position(|end| value <= *end).unwrap_or(DURATION_BUCKETS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::AcqRel);
        }
        self.add(value);
    }

    /// Returns the current value.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.value.load(Ordering::Acquire))
    }

    fn data_point(&self) -> DataPoint {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Acquire)).collect();
        DataPoint { labels: self.labels.clone(), value: self.value(), buckets }
    }
}

impl MetricSnapshot {
    /// Creates a snapshot from values that are sampled at collection time.
    pub fn from_values(desc: MetricDesc, points: Vec<(Vec<String>, f64)>) -> Self {
        let point = |(labels, value)| DataPoint { labels, value, buckets: Vec::new() };
        Self { desc, points: points.into_iter().map(point).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESC: MetricDesc = MetricDesc { name: "n_total", help: "n", kind: MetricKind::Counter, labels: &["a", "b"] };

    #[test]
    fn aggregates_series_beyond_the_limit() {
        let metric = Metric::new(DESC);
        for n in 0..3_000 {
            metric.with_labels(&[&n.to_string(), "x"]).increment();
        }
        let snapshot = metric.snapshot();
        assert_eq!(snapshot.points.len(), MAX_SERIES + 1);
        assert_eq!(snapshot.points.iter().map(|point| point.value).sum::<f64>(), 3_000.0);
        let overflow = snapshot.points.iter().find(|point| point.labels == [OVERFLOW_LABEL, OVERFLOW_LABEL]);
        assert_eq!(overflow.map(|point| point.value), Some(2_000.0));
    }

    #[test]
    fn concurrent_observations_are_all_counted() {
        let metric = Metric::new(MetricDesc { kind: MetricKind::Histogram, ..DESC });
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let metric = &metric;
                scope.spawn(move || {
                    for n in 0..5_000 {
                        metric.with_labels(&[["x", "y"][(thread + n) % 2], "z"]).observe(0.25);
                    }
                });
            }
        });
        let snapshot = metric.snapshot();
        let counts: Vec<u64> = snapshot.points.iter().map(|point| point.buckets.iter().sum()).collect();
        assert_eq!(counts, [20_000, 20_000]);
        assert_eq!(snapshot.points.iter().map(|point| point.value).collect::<Vec<_>>(), [5_000.0, 5_000.0]);
    }
}
