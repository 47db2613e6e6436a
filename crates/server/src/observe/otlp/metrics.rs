//! Conversion of metrics to OTLP.
//!
//! Names are those of Prometheus without the suffixes for type and unit, which have their own
//! fields in OTLP. Conversion back to Prometheus yields the original names.

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum};

use super::attributes;
use crate::observe::metrics::metric::{DURATION_BUCKETS, DataPoint, MetricKind, MetricSnapshot};

/// Aggregation temporality: values are totals since the start, not deltas.
const CUMULATIVE: i32 = 2;

/// Converts metric snapshots to OTLP messages.
pub fn to_otlp_metrics(snapshots: &[MetricSnapshot], started_ns: u64, now_ns: u64) -> Vec<Metric> {
    snapshots
        .iter()
        .filter(|snapshot| !snapshot.points.is_empty())
        .map(|snapshot| to_otlp_metric(snapshot, started_ns, now_ns))
        .collect()
}

fn to_otlp_metric(snapshot: &MetricSnapshot, start_time_unix_nano: u64, time_unix_nano: u64) -> Metric {
    let desc = &snapshot.desc;
    let attributes = |point: &DataPoint| {
        desc.labels.iter().zip(&point.labels).map(|(name, value)| attributes::text(name, value.as_str())).collect()
    };
    let number = |point: &DataPoint| NumberDataPoint {
        attributes: attributes(point),
        start_time_unix_nano,
        time_unix_nano,
        value: Some(Value::AsDouble(point.value)),
        ..NumberDataPoint::default()
    };
    let histogram = |point: &DataPoint| HistogramDataPoint {
        attributes: attributes(point),
        start_time_unix_nano,
        time_unix_nano,
        count: point.buckets.iter().sum(),
        sum: Some(point.value),
        bucket_counts: point.buckets.clone(),
        explicit_bounds: DURATION_BUCKETS.to_vec(),
        ..HistogramDataPoint::default()
    };
    let data = match desc.kind {
        MetricKind::Gauge => Data::Gauge(Gauge { data_points: snapshot.points.iter().map(number).collect() }),
        MetricKind::Counter => Data::Sum(Sum {
            data_points: snapshot.points.iter().map(number).collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        MetricKind::Histogram => Data::Histogram(Histogram {
            data_points: snapshot.points.iter().map(histogram).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    let (name, unit) = name_and_unit(desc.name);
    Metric { name, description: desc.help.to_owned(), unit: unit.to_owned(), data: Some(data), ..Metric::default() }
}

fn name_and_unit(name: &str) -> (String, &'static str) {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let units = [("_seconds", "s"), ("_bytes", "By"), ("_usd", "USD")];
    let found = units.iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)));
    let (name, unit) = found.unwrap_or((name, "1"));
    (name.to_owned(), unit)
}
