//! Prometheus text exposition format, version 0.0.4.

use std::fmt::Write as _;

use super::metric::{DURATION_BUCKETS, DataPoint, MetricKind, MetricSnapshot};

/// `Content-Type` of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders metrics as text.
pub fn render(metrics: &[MetricSnapshot]) -> String {
    let mut out = String::with_capacity(8 << 10);
    for MetricSnapshot { desc, points } in metrics {
        let kind = match desc.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let help = desc.help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a `String` cannot fail.
        write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n", name = desc.name).ok();
        for point in points {
            if desc.kind == MetricKind::Histogram {
                write_histogram(&mut out, desc.name, desc.labels, point);
            } else {
                write_sample(&mut out, desc.name, desc.labels, point, None, point.value);
            }
        }
    }
    out
}

/// Writes the cumulative buckets of a histogram.
fn write_histogram(out: &mut String, name: &str, labels: &[&str], point: &DataPoint) {
    let bucket = format!("{name}_bucket");
    let mut below = 0;
    for (n, count) in point.buckets.iter().enumerate() {
        below += count;
        let end = DURATION_BUCKETS.get(n).copied().unwrap_or(f64::INFINITY);
        write_sample(out, &bucket, labels, point, Some(end), below as f64);
    }
    write_sample(out, &format!("{name}_sum"), labels, point, None, point.value);
    write_sample(out, &format!("{name}_count"), labels, point, None, below as f64);
}

fn write_sample(out: &mut String, name: &str, labels: &[&str], point: &DataPoint, end: Option<f64>, value: f64) {
    let mut pairs: Vec<String> =
        labels.iter().zip(&point.labels).map(|(label, value)| format!("{label}=\"{}\"", escape_label(value))).collect();
    if let Some(end) = end {
        pairs.push(format!("le=\"{}\"", format_number(end)));
    }
    let pairs = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    writeln!(out, "{name}{pairs} {}", format_number(value)).ok();
}

fn format_number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}

fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::metric::{Metric, MetricDesc};

    #[test]
    fn escapes_label_values() {
        let metric =
            Metric::new(MetricDesc { name: "n_total", help: "a\nb", kind: MetricKind::Counter, labels: &["l"] });
        metric.with_labels(&["x\"} 9\n\\"]).increment();
        assert_eq!(
            render(&[metric.snapshot()]),
            "# HELP n_total a\\nb\n# TYPE n_total counter\nn_total{l=\"x\\\"} 9\\n\\\\\"} 1\n"
        );
    }

    #[test]
    fn histogram_buckets_are_cumulative() {
        let metric = Metric::new(MetricDesc { name: "t_seconds", help: "t", kind: MetricKind::Histogram, labels: &[] });
        for value in [0.0001, 0.3, 0.3, 1_000.0] {
            metric.with_labels(&[]).observe(value);
        }
        let text = render(&[metric.snapshot()]);
        for expected in ["t_seconds_bucket{le=\"0.0005\"} 1\n", "{le=\"0.5\"} 3\n", "{le=\"+Inf\"} 4\n", "_count 4\n"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
