//! Figures as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::Write as _;

use super::registry::{Kind, Point, SECONDS, Told};

/// What the text is, for `Content-Type`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes families down.
pub fn written(families: &[Told]) -> String {
    let mut out = String::with_capacity(8 << 10);
    for Told { about, points } in families {
        let kind = match about.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = about.help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a text does not fail.
        write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n", name = about.name).ok();
        for point in points {
            if about.kind == Kind::Histogram {
                histogram(&mut out, about.name, about.labels, point);
            } else {
                line(&mut out, about.name, about.labels, point, None, point.value);
            }
        }
    }
    out
}

/// Each bucket holds all that is below its end.
fn histogram(out: &mut String, name: &str, labels: &[&str], point: &Point) {
    let bucket = format!("{name}_bucket");
    let mut below = 0;
    for (n, count) in point.buckets.iter().enumerate() {
        below += count;
        let end = SECONDS.get(n).copied().unwrap_or(f64::INFINITY);
        line(out, &bucket, labels, point, Some(end), below as f64);
    }
    line(out, &format!("{name}_sum"), labels, point, None, point.value);
    line(out, &format!("{name}_count"), labels, point, None, below as f64);
}

fn line(out: &mut String, name: &str, labels: &[&str], point: &Point, end: Option<f64>, value: f64) {
    let mut pairs: Vec<String> =
        labels.iter().zip(&point.labels).map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
    if let Some(end) = end {
        pairs.push(format!("le=\"{}\"", number(end)));
    }
    let pairs = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    writeln!(out, "{name}{pairs} {}", number(value)).ok();
}

fn number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::registry::{About, Family};

    #[test]
    fn l11_values_of_labels_cannot_break_the_format() {
        let family = Family::new(About { name: "n_total", help: "a\nb", kind: Kind::Counter, labels: &["l"] });
        family.of(&["x\"} 9\n\\"]).count();
        assert_eq!(
            written(&[family.told()]),
            "# HELP n_total a\\nb\n# TYPE n_total counter\nn_total{l=\"x\\\"} 9\\n\\\\\"} 1\n"
        );
    }

    #[test]
    fn l11_buckets_of_a_histogram_add_up() {
        let family = Family::new(About { name: "t_seconds", help: "t", kind: Kind::Histogram, labels: &[] });
        for value in [0.0001, 0.3, 0.3, 1_000.0] {
            family.of(&[]).observe(value);
        }
        let text = written(&[family.told()]);
        for expected in ["t_seconds_bucket{le=\"0.0005\"} 1\n", "{le=\"0.5\"} 3\n", "{le=\"+Inf\"} 4\n", "_count 4\n"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
