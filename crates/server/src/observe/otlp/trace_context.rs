//! W3C trace context.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Trace context of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace id.
    pub trace_id: [u8; 16],
    /// Span id of the request itself.
    pub span_id: [u8; 8],
    /// Span id of the caller; `None` if the trace starts here.
    pub parent_span_id: Option<[u8; 8]>,
    /// `true` if the trace is sampled, as decided by the service that started it.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Continues the trace of a valid `traceparent`.
    ///
    /// Otherwise it starts a trace whose id is the run id, so that the trace can be found from the
    /// answer.
    pub fn from_traceparent(traceparent: Option<&str>, run_id: &str) -> Self {
        if let Some((trace_id, parent, sampled)) = traceparent.and_then(parse_traceparent) {
            return Self { trace_id, span_id: new_span_id(), parent_span_id: Some(parent), is_sampled: sampled };
        }
        let own = decode_hex(&run_id.replace('-', "")).or_else(|| decode_hex(&querymend::trace_id().replace('-', "")));
        Self { trace_id: own.unwrap_or([1; 16]), span_id: new_span_id(), parent_span_id: None, is_sampled: true }
    }

    /// Returns the `traceparent` to propagate to called servers.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-0{}", encode_hex(&self.trace_id), encode_hex(&self.span_id), u8::from(self.is_sampled))
    }
}

/// Parses `<version>-<trace>-<span>-<flags>`.
///
/// Fields appended by later versions are ignored here, but callers only pass on values of
/// [`TRACEPARENT_LENGTH`](crate::caller::TRACEPARENT_LENGTH), which have none.
fn parse_traceparent(text: &str) -> Option<([u8; 16], [u8; 8], bool)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let [version] = decode_hex::<1>(version)?;
    if version == 0xff || (version == 0 && parts.next().is_some()) {
        return None;
    }
    let [flags] = decode_hex::<1>(flags)?;
    let (trace, span) = (decode_hex::<16>(trace)?, decode_hex::<8>(span)?);
    (trace != [0; 16] && span != [0; 8]).then_some((trace, span, flags & 1 == 1))
}

/// Returns a unique span id.
pub fn new_span_id() -> [u8; 8] {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static SPANS: AtomicU64 = AtomicU64::new(0);
    let id = KEYS.hash_one(SPANS.fetch_add(1, Ordering::Relaxed));
    id.max(1).to_be_bytes()
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes lowercase hexadecimal digits, the only form that the standard allows.
fn decode_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
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
    fn continues_a_trace_or_starts_one_with_the_run_id() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let trace = TraceContext::from_traceparent(Some(parent), RUN);
        assert_eq!(
            (encode_hex(&trace.trace_id).as_str(), trace.is_sampled),
            ("4bf92f3577b34da6a3ce929d0e0e4736", false)
        );
        assert_eq!(trace.parent_span_id, Some([0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]));
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
            let trace = TraceContext::from_traceparent(Some(wrong), RUN);
            assert_eq!(encode_hex(&trace.trace_id), RUN.replace('-', ""), "{wrong}");
            assert!(trace.parent_span_id.is_none() && trace.is_sampled);
        }
    }

    #[test]
    fn span_ids_are_unique() {
        let ids: std::collections::HashSet<[u8; 8]> = (0..10_000).map(|_| new_span_id()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
