//! Figures by name and labels. Each server has its own: nothing is shared by the process, so two of them do not mix.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Series of one family. A label that turned out to have no end does not fill the memory: what comes later is counted together.
const MOST_SERIES: usize = 1_000;
/// What labels say of series that are counted together.
const OTHERS: &str = "other";
/// Stands between values of labels.
const BETWEEN: char = '\u{1f}';

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often something took so long, or was so large.
    Histogram,
}

/// A family of figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// Its name, as Prometheus wants it.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What its members differ in.
    pub labels: &'static [&'static str],
}

/// Where one bucket ends and the next begins, in seconds: from what a cached answer takes to what a patient person waits.
pub const SECONDS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// A family with its members.
pub struct Family {
    /// What it is.
    pub about: About,
    members: RwLock<HashMap<String, Arc<Series>>>,
}

/// One member of a family.
pub struct Series {
    labels: Vec<String>,
    /// The value, or the sum of all values, as the bits of a number.
    value: AtomicU64,
    /// How many values fell into each bucket; the last one has no end.
    buckets: Vec<AtomicU64>,
}

/// A member at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The values of its labels.
    pub labels: Vec<String>,
    /// The value, or the sum of all values.
    pub value: f64,
    /// How many values fell into each bucket.
    pub buckets: Vec<u64>,
}

/// A family at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What it is.
    pub about: About,
    /// Its members.
    pub points: Vec<Point>,
}

impl Family {
    /// One without members.
    pub fn new(about: About) -> Self {
        Self { about, members: RwLock::default() }
    }

    /// The member with these labels; a new one if there is none.
    pub fn of(&self, labels: &[&str]) -> Arc<Series> {
        let key = key(labels);
        if let Some(series) = self.members.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(series);
        }
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let full = members.len() >= MOST_SERIES && !members.contains_key(&key);
        let others = vec![OTHERS; labels.len()];
        let (key, labels) = if full { (self::key(&others), others.as_slice()) } else { (key, labels) };
        let buckets = if self.about.kind == Kind::Histogram { SECONDS.len() + 1 } else { 0 };
        let new = || Series {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            value: AtomicU64::new(0f64.to_bits()),
            buckets: (0..buckets).map(|_| AtomicU64::new(0)).collect(),
        };
        Arc::clone(members.entry(key).or_insert_with(|| Arc::new(new())))
    }

    /// All members as they are now, in the order of their labels.
    pub fn told(&self) -> Told {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        let mut points: Vec<Point> = members.values().map(|series| series.point()).collect();
        drop(members);
        points.sort_by(|a, b| a.labels.cmp(&b.labels));
        Told { about: self.about, points }
    }
}

fn key(labels: &[&str]) -> String {
    let mut key = String::with_capacity(labels.iter().map(|label| label.len() + 1).sum());
    for label in labels {
        key.push_str(label);
        key.push(BETWEEN);
    }
    key
}

impl Series {
    /// Adds to the value.
    pub fn add(&self, more: f64) {
        let sum = |bits: u64| Some((f64::from_bits(bits) + more).to_bits());
        self.value.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).ok();
    }

    /// Counts one.
    pub fn count(&self) {
        self.add(1.0);
    }

    /// Takes a value down.
    pub fn observe(&self, value: f64) {
        let bucket = SECONDS.iter().position(|end| value <= *end).unwrap_or(SECONDS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::AcqRel);
        }
        self.add(value);
    }

    /// The value now.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.value.load(Ordering::Acquire))
    }

    fn point(&self) -> Point {
        let buckets = self.buckets.iter().map(|bucket| bucket.load(Ordering::Acquire)).collect();
        Point { labels: self.labels.clone(), value: self.value(), buckets }
    }
}

impl Told {
    /// A family whose members are only looked at when somebody asks.
    pub fn now(about: About, points: Vec<(Vec<String>, f64)>) -> Self {
        let point = |(labels, value)| Point { labels, value, buckets: Vec::new() };
        Self { about, points: points.into_iter().map(point).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About = About { name: "n_total", help: "n", kind: Kind::Counter, labels: &["a", "b"] };

    #[test]
    fn l11_labels_without_end_are_counted_together() {
        let family = Family::new(ABOUT);
        for n in 0..3_000 {
            family.of(&[&n.to_string(), "x"]).count();
        }
        let told = family.told();
        assert_eq!(told.points.len(), MOST_SERIES + 1);
        assert_eq!(told.points.iter().map(|point| point.value).sum::<f64>(), 3_000.0);
        let others = told.points.iter().find(|point| point.labels == [OTHERS, OTHERS]);
        assert_eq!(others.map(|point| point.value), Some(2_000.0));
    }

    #[test]
    fn l12_nothing_is_lost_when_many_count_at_once() {
        let family = Family::new(About { kind: Kind::Histogram, ..ABOUT });
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let family = &family;
                scope.spawn(move || {
                    for n in 0..5_000 {
                        family.of(&[["x", "y"][(thread + n) % 2], "z"]).observe(0.25);
                    }
                });
            }
        });
        let told = family.told();
        let counts: Vec<u64> = told.points.iter().map(|point| point.buckets.iter().sum()).collect();
        assert_eq!(counts, [20_000, 20_000]);
        assert_eq!(told.points.iter().map(|point| point.value).collect::<Vec<_>>(), [5_000.0, 5_000.0]);
    }
}
