//! What model servers and files may say, damaged.

use querymend_testing::{Counted, Fuzz, is_full, peak, text};
use serde_json::Value;

use crate::sse::Events;
use crate::trouble::Trouble;
use crate::wire::{Heard, Wire};

/// A length that a server or a file claims is seen when it is asked for, not when the memory is used up.
#[global_allocator]
static COUNTED: Counted = Counted;

/// Does something that may take so many bytes at once, and no more.
pub(crate) fn within<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let (done, held) = peak(work);
    assert!(held <= most, "{held} bytes were held at once");
    done
}

const STREAMS: &[&str] = &[
    "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"SELECT\"},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" 1 ü\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"cost\":0.01}}\n\ndata: [DONE]\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":5}}}\n\nevent: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"SELECT 1\"}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"SELECT 1\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2},\"modelVersion\":\"m\"}\n\n",
    "data: {\"error\":{\"message\":\"rate limit\",\"type\":\"rate_limit_error\",\"code\":\"x\",\"param\":\"stop\"}}\n\n",
    "{\"choices\":[{\"message\":{\"content\":\"SELECT 1\"},\"finish_reason\":\"length\"}]}",
    "{\"promptFeedback\":{\"blockReason\":\"SAFETY\"},\"detail\":[{\"msg\":\"x\",\"loc\":[\"a\"]}]}",
];

const WORDS: &[&str] = &[
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

/// All events, or that they are none, by pieces of a size.
fn events(bytes: &[u8], size: usize) -> Result<Vec<String>, String> {
    let (mut events, mut all) = (Events::default(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        all.extend(events.feed(piece, 1 << 20).map_err(|why| format!("{why:?}"))?);
    }
    all.extend(events.rest().map_err(|why| format!("{why:?}"))?);
    Ok(all)
}

#[test]
fn fuzz_streams() {
    let inputs = if is_full() { 3_000 } else { 750 };
    let target = Fuzz::new("streams", env!("CARGO_MANIFEST_DIR")).seeds(STREAMS.iter().copied()).inputs(inputs);
    target.run(&mut |random, pool| text(random, pool, WORDS), &|input| {
        within((1 << 20) + 400 * input.len(), || {
            let whole = events(input, input.len());
            assert_eq!(whole, events(input, 1), "it depends on where the network cuts");
            let said = String::from_utf8_lossy(input).into_owned();
            for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
                let mut heard = Heard::default();
                for event in whole.iter().flatten().chain([&said]) {
                    let Ok(value) = serde_json::from_str::<Value>(event) else { continue };
                    let before = heard.text.clone();
                    let taken = wire.hear(&mut heard, &value);
                    assert!(heard.text.starts_with(&before), "what was heard is taken back");
                    if let Err(trouble) = taken {
                        drop(trouble.into_error("m").to_string());
                    }
                }
            }
            for status in [200, 400, 429, 500] {
                drop(Trouble::in_answer(status, None, input).into_error("m").to_string());
            }
        });
    });
}
