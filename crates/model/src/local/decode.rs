//! Prompt processing and token sampling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Tensor;

use super::error::LocalModelError;
use super::forward::{ForwardInput, KvCache, PREFILL_CHUNK_TOKENS, Transformer};
use super::tokenizer::ChatTokenizer;
use super::weights::GgufReader;
use super::{LocalFiles, constrained, repacked, statement_end};
use crate::error::{Error, TimeoutPhase};
use crate::request::{Completion, CompletionRequest, FinishReason, Usage};

/// Number of tokens in the prefix cache, enough for about ten small databases that are queried in
/// turn.
///
/// A token takes 25 kB in a model with half a billion parameters.
const PREFIX_CACHE_TOKENS: usize = 8_192;

/// Minimum length of a shared prefix for reusing a cache entry, in tokens.
const MIN_PREFIX_TOKENS: usize = 16;

/// Nucleus (top-p) sampling threshold.
const TOP_P: f32 = 0.95;

/// Temperature of additional samples if the request's temperature is 0.
const SAMPLE_TEMPERATURE: f32 = 0.7;

/// Maximum number of tokens to try until one satisfies the constraints.
const MAX_RESAMPLES: usize = 64;

/// Loaded model with its prefix cache.
pub(super) struct Decoder {
    transformer: Transformer,
    tokenizer: ChatTokenizer,
    context: usize,
    /// KV caches of recent prompts, the most recent last.
    prefix_cache: Vec<PrefixCacheEntry>,
}

struct PrefixCacheEntry {
    tokens: Vec<u32>,
    kv_cache: KvCache,
}

/// Sequence that is being generated.
struct Sequence {
    prefix: PrefixCacheEntry,
    temperature: f32,
    rng: SplitMix64,
    generated: Vec<u32>,
    text: String,
    finish_reason: FinishReason,
    is_finished: bool,
}

impl Sequence {
    fn new(prefix: PrefixCacheEntry, temperature: f32, seed: u64) -> Self {
        Self {
            prefix,
            temperature,
            rng: SplitMix64(seed),
            generated: Vec::new(),
            text: String::new(),
            finish_reason: FinishReason::Length,
            is_finished: false,
        }
    }
}

/// Reason for ending generation early.
enum DecodeAborted {
    Cancelled,
    TimedOut,
    Failed(LocalModelError),
}

impl<T: Into<LocalModelError>> From<T> for DecodeAborted {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

impl Decoder {
    pub(super) fn load(
        files: &LocalFiles,
        source: GgufReader,
        tokens: ChatTokenizer,
        context: usize,
    ) -> Result<Self, LocalModelError> {
        let weights = repacked::load_weights(files, source)?;
        Ok(Self {
            transformer: Transformer::new(weights, context)?,
            tokenizer: tokens,
            context,
            prefix_cache: Vec::new(),
        })
    }

    /// Completes one request.
    pub(super) fn complete(
        &mut self,
        name: &str,
        request: &CompletionRequest,
        watch: &mut dyn FnMut(&str),
        dropped: &AtomicBool,
    ) -> Result<Completion, Error> {
        self.generate(name, request, watch, dropped).map_err(|aborted| match aborted {
            DecodeAborted::Cancelled => Error::Cancelled,
            DecodeAborted::TimedOut => {
                Error::Timeout { model: name.to_owned(), after: request.timeout, waiting_for: TimeoutPhase::End }
            }
            DecodeAborted::Failed(LocalModelError::PromptTooLong(what)) => {
                Error::ContextTooLong { model: name.to_owned(), message: what }
            }
            DecodeAborted::Failed(error) => Error::BadResponse { model: name.to_owned(), message: error.to_string() },
        })
    }

    fn generate(
        &mut self,
        name: &str,
        request: &CompletionRequest,
        watch: &mut dyn FnMut(&str),
        dropped: &AtomicBool,
    ) -> Result<Completion, DecodeAborted> {
        let start = Instant::now();
        let check = || {
            if dropped.load(Ordering::Relaxed) {
                Err(DecodeAborted::Cancelled)
            } else if start.elapsed() > request.timeout {
                Err(DecodeAborted::TimedOut)
            } else {
                Ok(())
            }
        };
        let prompt = self.tokenizer.encode_chat(&request.messages)?;
        if prompt.is_empty() || prompt.len() + 16 > self.context {
            let message = format!("it has {} tokens, and {} fit", prompt.len(), self.context);
            return Err(DecodeAborted::Failed(LocalModelError::PromptTooLong(message)));
        }
        let mut prefix = self.take_cached_prefix(&prompt);
        let read = self.prefill(&mut prefix, &prompt, &check);
        let logits = match read {
            Ok(logits) => logits,
            Err(aborted) => {
                self.cache_prefix(prefix);
                return Err(aborted);
            }
        };
        let max_tokens = (self.context - prompt.len()).min(request.max_tokens as usize);
        let mut sequences = vec![Sequence::new(prefix, request.temperature, request.seed.unwrap_or(0x5EED))];
        for further in 0..request.extra_samples {
            let first = &sequences[0].prefix;
            let copy = PrefixCacheEntry { tokens: first.tokens.clone(), kv_cache: first.kv_cache.fork()? };
            let temperature = if request.temperature > 0.0 { request.temperature } else { SAMPLE_TEMPERATURE };
            sequences.push(Sequence::new(copy, temperature, request.seed.unwrap_or(0x5EED) + 1 + u64::from(further)));
        }
        let mut streamed = 0;
        let result = self.decode_all(&mut sequences, &logits, max_tokens, request, &check, &mut |text: &str| {
            if text.len() > streamed && text.is_char_boundary(streamed) {
                watch(&text[streamed..]);
                streamed = text.len();
            }
        });
        let output = sequences.iter().map(|sequence| sequence.generated.len() as u64).sum();
        let mut finished = sequences.into_iter();
        let Some(first) = finished.next() else { return Err(DecodeAborted::Cancelled) };
        self.cache_prefix(first.prefix);
        result?;
        if first.text.len() > streamed && first.text.is_char_boundary(streamed) {
            watch(&first.text[streamed..]);
        }
        let more = finished.map(|sequence| sequence.text).filter(|text| !text.trim().is_empty()).collect();
        let usage = Usage { input: prompt.len() as u64, output, cost_usd: Some(0.0) };
        Ok(Completion { text: first.text, more, usage, stopped: first.finish_reason, model: name.to_owned() })
    }

    /// Generates all sequences to the end; `on_text` receives the text of the first one.
    fn decode_all(
        &self,
        sequences: &mut [Sequence],
        logits: &Tensor,
        max_tokens: usize,
        request: &CompletionRequest,
        check: &dyn Fn() -> Result<(), DecodeAborted>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), DecodeAborted> {
        // All sequences continue the same prompt, so their first logits are equal.
        let first = logits.flatten_all()?.to_vec1::<f32>()?;
        let mut rows = vec![first; sequences.len()];
        loop {
            check()?;
            let mut logits = rows.into_iter();
            for sequence in sequences.iter_mut().filter(|sequence| !sequence.is_finished) {
                if let Some(logits) = logits.next() {
                    self.sample_next(sequence, logits, max_tokens, request);
                }
            }
            // A character may span several tokens; until it is complete it decodes to the
            // replacement character.
            if let Some(sequence) =
                sequences.first().filter(|sequence| !sequence.is_finished && !sequence.text.ends_with('\u{FFFD}'))
            {
                on_text(&sequence.text);
            }
            let mut inputs: Vec<ForwardInput<'_>> = Vec::new();
            for sequence in sequences.iter_mut().filter(|sequence| !sequence.is_finished) {
                let last = sequence.generated.len() - 1;
                inputs.push(ForwardInput {
                    kv_cache: &mut sequence.prefix.kv_cache,
                    tokens: &sequence.generated[last..],
                });
            }
            if inputs.is_empty() {
                return Ok(());
            }
            rows = self.transformer.forward(&mut inputs)?.to_vec2::<f32>()?;
            for sequence in sequences.iter_mut().filter(|sequence| !sequence.is_finished) {
                sequence.prefix.tokens.extend(sequence.generated.last());
            }
        }
    }

    /// Samples the next token of a sequence.
    fn sample_next(
        &self,
        sequence: &mut Sequence,
        mut logits: Vec<f32>,
        max_tokens: usize,
        request: &CompletionRequest,
    ) {
        if sequence.generated.len() >= max_tokens {
            sequence.is_finished = true;
            return;
        }
        let names = request.allowed_names.as_deref().filter(|_| request.expects_sql);
        let is_allowed = |token: u32| {
            let Some(names) = names else { return true };
            if self.tokenizer.is_end_token(token) {
                return constrained::is_valid_prefix(&sequence.text, names, true);
            }
            let mut longer = sequence.generated.clone();
            longer.push(token);
            let text = self.tokenizer.decode(&longer);
            text.ends_with('\u{FFFD}') || constrained::is_valid_prefix(&text, names, false)
        };
        let token = sample_token(&mut logits, sequence.temperature, &mut sequence.rng, &is_allowed);
        if self.tokenizer.is_end_token(token) {
            (sequence.is_finished, sequence.finish_reason) = (true, FinishReason::End);
            return;
        }
        sequence.generated.push(token);
        sequence.text = self.tokenizer.decode(&sequence.generated);
        if let Some(end) = self.stop_position(&sequence.text, request) {
            sequence.text.truncate(end);
            (sequence.is_finished, sequence.finish_reason) = (true, FinishReason::End);
        }
    }

    /// Returns the end of the text: at a stop sequence, or, if SQL is expected, after the first
    /// statement.
    fn stop_position(&self, text: &str, request: &CompletionRequest) -> Option<usize> {
        let stop =
            request.stop.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop.as_str())).min();
        let statement = if request.expects_sql { statement_end::find_statement_end(text) } else { None };
        stop.into_iter().chain(statement).min()
    }

    /// Removes the cache entry with the longest shared prefix and truncates it to that prefix.
    fn take_cached_prefix(&mut self, prompt: &[u32]) -> PrefixCacheEntry {
        let common_prefix = |kept: &PrefixCacheEntry| {
            kept.tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count().min(kept.kv_cache.len())
        };
        let best = self.prefix_cache.iter().enumerate().map(|(i, kept)| (common_prefix(kept), i)).max();
        match best {
            Some((length, index)) if length >= MIN_PREFIX_TOKENS => {
                let mut kept = self.prefix_cache.remove(index);
                // The last token is processed again, because its logits are not cached.
                let length = length.min(prompt.len() - 1);
                kept.tokens.truncate(length);
                kept.kv_cache.truncate(length);
                kept
            }
            _ => PrefixCacheEntry { tokens: Vec::new(), kv_cache: KvCache::default() },
        }
    }

    fn cache_prefix(&mut self, entry: PrefixCacheEntry) {
        self.prefix_cache.push(entry);
        while self.prefix_cache.len() > 1
            && self.prefix_cache.iter().map(|kept| kept.tokens.len()).sum::<usize>() > PREFIX_CACHE_TOKENS
        {
            self.prefix_cache.remove(0);
        }
    }

    fn prefill(
        &self,
        prefix: &mut PrefixCacheEntry,
        prompt: &[u32],
        check: &dyn Fn() -> Result<(), DecodeAborted>,
    ) -> Result<Tensor, DecodeAborted> {
        let mut logits = None;
        while prefix.tokens.len() < prompt.len() {
            check()?;
            let from = prefix.tokens.len();
            let part = &prompt[from..prompt.len().min(from + PREFILL_CHUNK_TOKENS)];
            logits =
                Some(self.transformer.forward(&mut [ForwardInput { kv_cache: &mut prefix.kv_cache, tokens: part }])?);
            prefix.tokens.extend_from_slice(part);
        }
        logits.ok_or(DecodeAborted::Failed(LocalModelError::EmptyPrompt))
    }

    /// Measures tokens per second: prompt processing, generation, and generation in a batch of
    /// four.
    pub(super) fn measure_speed(&mut self) -> Result<(f64, f64, f64), LocalModelError> {
        let vocabulary = self.transformer.hyperparameters().vocabulary_size as u32;
        let tokens: Vec<u32> = (0..512u32).map(|i| i * 97 % vocabulary.min(20_000)).collect();
        let mut kv_cache = KvCache::default();
        self.transformer.forward(&mut [ForwardInput { kv_cache: &mut kv_cache, tokens: &tokens[..32] }])?;
        self.transformer.forward(&mut [ForwardInput { kv_cache: &mut kv_cache, tokens: &tokens[..1] }])?;
        let mut kv_cache = KvCache::default();
        let rate = |count: usize, start: Instant| count as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        for part in tokens.chunks(PREFILL_CHUNK_TOKENS) {
            self.transformer.forward(&mut [ForwardInput { kv_cache: &mut kv_cache, tokens: part }])?;
        }
        let read = rate(tokens.len(), start);
        let start = Instant::now();
        for token in &tokens[..64] {
            self.transformer.forward(&mut [ForwardInput { kv_cache: &mut kv_cache, tokens: &[*token] }])?;
        }
        let write = rate(64, start);
        let mut four = [kv_cache.fork()?, kv_cache.fork()?, kv_cache.fork()?, kv_cache.fork()?];
        let start = Instant::now();
        for token in &tokens[..24] {
            let mut inputs: Vec<ForwardInput<'_>> = four
                .iter_mut()
                .map(|kv_cache| ForwardInput { kv_cache, tokens: std::slice::from_ref(token) })
                .collect();
            self.transformer.forward(&mut inputs)?;
        }
        Ok((read, write, rate(24 * 4, start)))
    }
}

/// Reproducible pseudo-random number generator (splitmix64).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next_f32(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Samples the next token: the most likely allowed one, or an allowed one by top-p sampling.
///
/// If no reasonably likely token is allowed, the constraint is dropped: the generated query is
/// validated afterwards in any case.
fn sample_token(logits: &mut [f32], temperature: f32, rng: &mut SplitMix64, is_allowed: &dyn Fn(u32) -> bool) -> u32 {
    let best = |logits: &[f32]| {
        let start = (0usize, f32::NEG_INFINITY);
        logits.iter().enumerate().fold(start, |best, (i, logit)| if *logit > best.1 { (i, *logit) } else { best })
    };
    let (top, highest) = best(logits);
    if temperature <= 0.0 || !temperature.is_finite() {
        let mut token = top;
        for _ in 0..MAX_RESAMPLES {
            if is_allowed(token as u32) {
                return token as u32;
            }
            logits[token] = f32::NEG_INFINITY;
            token = best(logits).0;
        }
        return top as u32;
    }
    let mut candidates: Vec<(usize, f32)> = logits
        .iter()
        .enumerate()
        .map(|(i, logit)| (i, ((logit - highest) / temperature).exp()))
        .filter(|(_, weight)| *weight > 1e-4)
        .collect();
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total: f32 = candidates.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    let enough = candidates.iter().position(|(_, weight)| {
        sum += weight;
        sum >= TOP_P * total
    });
    candidates.truncate(enough.map_or(candidates.len(), |place| place + 1));
    while !candidates.is_empty() {
        let mut left = rng.next_f32() * candidates.iter().map(|(_, weight)| weight).sum::<f32>();
        let hit = candidates.iter().position(|(_, weight)| {
            left -= weight;
            left <= 0.0
        });
        let (token, _) = candidates.remove(hit.unwrap_or(0));
        if is_allowed(token as u32) {
            return token as u32;
        }
    }
    sample_token(logits, 0.0, rng, is_allowed)
}
