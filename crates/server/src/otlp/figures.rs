//! Figures as OpenTelemetry has them. A name is the one of Prometheus without what it says about kind and unit, which have fields of
//! their own here; who turns them back into Prometheus gets the same names again.

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum};

use super::attributes;
use crate::metrics::registry::{Kind, Point, SECONDS, Told};

/// All values since the start, and not since the last time.
const CUMULATIVE: i32 = 2;

/// Families as messages.
pub fn messages(families: &[Told], started_ns: u64, now_ns: u64) -> Vec<Metric> {
    families.iter().filter(|told| !told.points.is_empty()).map(|told| message(told, started_ns, now_ns)).collect()
}

fn message(told: &Told, start_time_unix_nano: u64, time_unix_nano: u64) -> Metric {
    let about = &told.about;
    let attributes = |point: &Point| {
        about.labels.iter().zip(&point.labels).map(|(name, value)| attributes::text(name, value.as_str())).collect()
    };
    let number = |point: &Point| NumberDataPoint {
        attributes: attributes(point),
        start_time_unix_nano,
        time_unix_nano,
        value: Some(Value::AsDouble(point.value)),
        ..NumberDataPoint::default()
    };
    let spread = |point: &Point| HistogramDataPoint {
        attributes: attributes(point),
        start_time_unix_nano,
        time_unix_nano,
        count: point.buckets.iter().sum(),
        sum: Some(point.value),
        bucket_counts: point.buckets.clone(),
        explicit_bounds: SECONDS.to_vec(),
        ..HistogramDataPoint::default()
    };
    let data = match about.kind {
        Kind::Gauge => Data::Gauge(Gauge { data_points: told.points.iter().map(number).collect() }),
        Kind::Counter => Data::Sum(Sum {
            data_points: told.points.iter().map(number).collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: told.points.iter().map(spread).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    let (name, unit) = named(about.name);
    Metric { name, description: about.help.to_owned(), unit: unit.to_owned(), data: Some(data), ..Metric::default() }
}

fn named(name: &str) -> (String, &'static str) {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let units = [("_seconds", "s"), ("_bytes", "By"), ("_usd", "USD")];
    let found = units.iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)));
    let (name, unit) = found.unwrap_or((name, "1"));
    (name.to_owned(), unit)
}
