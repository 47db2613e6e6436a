//! Which trace something belongs to: W3C trace context.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The trace of a request, and its own place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span of the request itself.
    pub span_id: [u8; 8],
    /// The span that it was sent from.
    pub parent: Option<[u8; 8]>,
    /// Whoever began the trace wants it to be written down.
    pub sampled: bool,
}

impl Trace {
    /// Goes on with the trace that a sender names. Where none does, or what it says is no trace, one begins that has the name of the
    /// run: whoever has the answer finds its trace.
    pub fn of(traceparent: Option<&str>, run: &str) -> Self {
        if let Some((trace_id, parent, sampled)) = traceparent.and_then(read) {
            return Self { trace_id, span_id: span_id(), parent: Some(parent), sampled };
        }
        let own = bytes(&run.replace('-', "")).or_else(|| bytes(&querymend::trace_id().replace('-', "")));
        Self { trace_id: own.unwrap_or([1; 16]), span_id: span_id(), parent: None, sampled: true }
    }

    /// What those who are asked on the way are told.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-0{}", hex(&self.trace_id), hex(&self.span_id), u8::from(self.sampled))
    }
}

/// `00-<trace>-<span>-<flags>`. Later versions may say more at the end.
fn read(text: &str) -> Option<([u8; 16], [u8; 8], bool)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let [version] = bytes::<1>(version)?;
    if version == 0xff || (version == 0 && parts.next().is_some()) {
        return None;
    }
    let [flags] = bytes::<1>(flags)?;
    let (trace, span) = (bytes::<16>(trace)?, bytes::<8>(span)?);
    (trace != [0; 16] && span != [0; 8]).then_some((trace, span, flags & 1 == 1))
}

/// A name for a span, which no other has.
pub fn span_id() -> [u8; 8] {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static SPANS: AtomicU64 = AtomicU64::new(0);
    let id = KEYS.hash_one(SPANS.fetch_add(1, Ordering::Relaxed));
    id.max(1).to_be_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Small letters only, as the standard has it.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let fine = text.len() == 2 * N && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let mut bytes = [0; N];
    for (n, byte) in bytes.iter_mut().enumerate().filter(|_| fine) {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    fine.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "0192f0c1-2345-7678-89ab-cdef01234567";

    #[test]
    fn l11_a_trace_goes_on_or_begins_with_the_name_of_the_run() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let trace = Trace::of(Some(parent), RUN);
        assert_eq!((hex(&trace.trace_id).as_str(), trace.sampled), ("4bf92f3577b34da6a3ce929d0e0e4736", false));
        assert_eq!(trace.parent, Some([0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]));
        assert!(trace.traceparent().ends_with("-00") && trace.traceparent().len() == 55);
        let wrong = [
            "",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-äbf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ];
        for wrong in wrong {
            let trace = Trace::of(Some(wrong), RUN);
            assert_eq!(hex(&trace.trace_id), RUN.replace('-', ""), "{wrong}");
            assert!(trace.parent.is_none() && trace.sampled);
        }
    }

    #[test]
    fn l12_names_of_spans_differ() {
        let ids: std::collections::HashSet<[u8; 8]> = (0..10_000).map(|_| span_id()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
