//! Fuzz tests of server responses and model files.

use querymend_testing::{CountingAllocator, FuzzTarget, is_full_suite, mutate_text, peak_memory};
use serde_json::Value;

use crate::protocol::{ProviderProtocol, StreamAccumulator};
use crate::provider_error::ProviderError;
use crate::sse::SseParser;

/// Detects a large claimed length when it is allocated, before the memory is exhausted.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Runs `work` and asserts that its peak memory use is at most `max_bytes`.
pub(crate) fn assert_peak_memory<T>(max_bytes: usize, work: impl FnOnce() -> T) -> T {
    let (done, peak_bytes) = peak_memory(work);
    assert!(peak_bytes <= max_bytes, "{peak_bytes} bytes were held at once");
    done
}

const SEED_STREAMS: &[&str] = &[
    "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"SELECT\"},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" 1 ü\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"cost\":0.01}}\n\ndata: [DONE]\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":5}}}\n\nevent: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"SELECT 1\"}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"SELECT 1\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2},\"modelVersion\":\"m\"}\n\n",
    "data: {\"error\":{\"message\":\"rate limit\",\"type\":\"rate_limit_error\",\"code\":\"x\",\"param\":\"stop\"}}\n\n",
    "{\"choices\":[{\"message\":{\"content\":\"SELECT 1\"},\"finish_reason\":\"length\"}]}",
    "{\"promptFeedback\":{\"blockReason\":\"SAFETY\"},\"detail\":[{\"msg\":\"x\",\"loc\":[\"a\"]}]}",
];

const FRAGMENTS: &[&str] = &[
    "data: ",
    "data:",
    "event: ",
    ": comment",
    "\n\n",
    "\r\n\r\n",
    "[DONE]",
    "{}",
    "[]",
    "null",
    "[{",
    "}]",
    "\"choices\":",
    "\"delta\":",
    "\"content\":",
    "\"message\":",
    "\"error\":",
    "\"text\":",
    "\"usage\":",
    "\"finish_reason\":",
    "\"type\":",
    "\"candidates\":",
    "\"parts\":",
    "18446744073709551616",
    "-1",
    "1e999",
    "\\ud800",
    "\\u0000",
    "true",
    "\"code\":",
    "\"detail\":",
    "\"retryDelay\":\"3s\"",
];

/// Parses bytes as server-sent events, in chunks of `size`.
fn parse_events(bytes: &[u8], size: usize) -> Result<Vec<String>, String> {
    let (mut events, mut all) = (SseParser::default(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        all.extend(events.feed(piece, 1 << 20).map_err(|why| format!("{why:?}"))?);
    }
    all.extend(events.finish().map_err(|why| format!("{why:?}"))?);
    Ok(all)
}

#[test]
fn fuzz_streams() {
    let inputs = if is_full_suite() { 3_000 } else { 750 };
    let target =
        FuzzTarget::new("streams", env!("CARGO_MANIFEST_DIR")).seeds(SEED_STREAMS.iter().copied()).inputs(inputs);
    target.run(&mut |random, pool| mutate_text(random, pool, FRAGMENTS), &|input| {
        assert_peak_memory((1 << 20) + 400 * input.len(), || {
            let whole = parse_events(input, input.len());
            assert_eq!(whole, parse_events(input, 1), "it depends on where the network cuts");
            let text = String::from_utf8_lossy(input).into_owned();
            for wire in [ProviderProtocol::OpenAi, ProviderProtocol::Anthropic, ProviderProtocol::Gemini] {
                let mut heard = StreamAccumulator::default();
                for event in whole.iter().flatten().chain([&text]) {
                    let Ok(value) = serde_json::from_str::<Value>(event) else { continue };
                    let before = heard.text.clone();
                    let taken = wire.apply_event(&mut heard, &value);
                    assert!(heard.text.starts_with(&before), "what was heard is taken back");
                    if let Err(error) = taken {
                        drop(error.into_error("m").to_string());
                    }
                }
            }
            for status in [200, 400, 429, 500] {
                drop(ProviderError::from_response(status, None, input).into_error("m").to_string());
            }
        });
    });
}
