//! Writing: a prompt is read, then one token after the other is chosen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Tensor;

use super::forward::{Memory, Run, STRIDE, Transformer};
use super::tokens::Tokens;
use super::trouble::Trouble;
use super::weights::Source;
use super::{LocalFiles, prepared, statement};
use crate::error::{Error, Wait};
use crate::request::{Reply, Request, Stopped, Usage};

/// How many tokens of earlier prompts stay in memory, so that questions about several databases in turn are all answered
/// quickly: about ten small databases. One takes 25 kB in a model of half a billion numbers.
const KEPT: usize = 8_192;

/// A prompt that begins like a kept one for at least this long goes on from there.
const WORTH: usize = 16;

/// The share of the likeliest tokens that chance may choose from, where it may.
const LIKELY: f32 = 0.95;

/// A loaded model and what it has read.
pub(super) struct Mind {
    transformer: Transformer,
    tokens: Tokens,
    context: usize,
    /// What was read lately, the latest last.
    kept: Vec<Kept>,
}

struct Kept {
    tokens: Vec<u32>,
    memory: Memory,
}

/// Why writing ended early.
enum Broken {
    Dropped,
    Late,
    Trouble(Trouble),
}

impl<T: Into<Trouble>> From<T> for Broken {
    fn from(trouble: T) -> Self {
        Self::Trouble(trouble.into())
    }
}

impl Mind {
    pub(super) fn load(files: &LocalFiles, source: Source, tokens: Tokens, context: usize) -> Result<Self, Trouble> {
        let weights = prepared::weights(files, source)?;
        Ok(Self { transformer: Transformer::new(weights, context)?, tokens, context, kept: Vec::new() })
    }

    /// Replies to one request.
    pub(super) fn reply(
        &mut self,
        name: &str,
        request: &Request,
        watch: &mut dyn FnMut(&str),
        dropped: &AtomicBool,
    ) -> Result<Reply, Error> {
        self.write(name, request, watch, dropped).map_err(|broken| match broken {
            Broken::Dropped => Error::Cancelled,
            Broken::Late => Error::Timeout { model: name.to_owned(), after: request.timeout, waiting_for: Wait::End },
            Broken::Trouble(Trouble::TooLong(what)) => Error::ContextTooLong { model: name.to_owned(), message: what },
            Broken::Trouble(trouble) => Error::BadResponse { model: name.to_owned(), message: trouble.to_string() },
        })
    }

    fn write(
        &mut self,
        name: &str,
        request: &Request,
        watch: &mut dyn FnMut(&str),
        dropped: &AtomicBool,
    ) -> Result<Reply, Broken> {
        let start = Instant::now();
        let check = || {
            if dropped.load(Ordering::Relaxed) {
                Err(Broken::Dropped)
            } else if start.elapsed() > request.timeout {
                Err(Broken::Late)
            } else {
                Ok(())
            }
        };
        let prompt = self.tokens.conversation(&request.messages)?;
        if prompt.is_empty() || prompt.len() + 16 > self.context {
            let message = format!("it has {} tokens, and {} fit", prompt.len(), self.context);
            return Err(Broken::Trouble(Trouble::TooLong(message)));
        }
        let mut kept = self.recall(&prompt);
        let read = self.read(&mut kept, &prompt, &check);
        let mut scores = match read {
            Ok(scores) => scores,
            Err(broken) => {
                self.keep(kept);
                return Err(broken);
            }
        };
        let mut chance = Chance(request.seed.unwrap_or(0x5EED));
        let room = (self.context - prompt.len()).min(request.max_tokens as usize);
        let (mut written, mut text, mut told, mut stopped) = (Vec::new(), String::new(), 0, Stopped::Length);
        let result = loop {
            if written.len() >= room {
                break Ok(());
            }
            if let Err(broken) = check() {
                break Err(broken);
            }
            let token = match choose(&scores, request.temperature, &mut chance) {
                Ok(token) => token,
                Err(error) => break Err(error.into()),
            };
            if self.tokens.is_end(token) {
                stopped = Stopped::End;
                break Ok(());
            }
            written.push(token);
            text = self.tokens.text(&written);
            if let Some(end) = self.ended(&text, request) {
                text.truncate(end);
                stopped = Stopped::End;
                break Ok(());
            }
            // A character may come in several tokens; until it is whole it reads as the replacement character.
            if !text.ends_with('\u{FFFD}') && text.len() > told {
                watch(&text[told..]);
                told = text.len();
            }
            scores = match self.transformer.forward(&mut [Run { memory: &mut kept.memory, tokens: &[token] }]) {
                Ok(scores) => scores,
                Err(error) => break Err(error.into()),
            };
            kept.tokens.push(token);
        };
        self.keep(kept);
        result?;
        if text.len() > told && text.is_char_boundary(told) {
            watch(&text[told..]);
        }
        let usage = Usage { input: prompt.len() as u64, output: written.len() as u64, cost_usd: Some(0.0) };
        Ok(Reply { text, usage, stopped, model: name.to_owned() })
    }

    /// Where the text is over: at a stop text, or, where SQL is asked for, at the end of one statement.
    fn ended(&self, text: &str, request: &Request) -> Option<usize> {
        let stop =
            request.stop.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop.as_str())).min();
        let statement = if request.sql { statement::end(text) } else { None };
        stop.into_iter().chain(statement).min()
    }

    /// What is known already of a prompt, with everything else forgotten.
    fn recall(&mut self, prompt: &[u32]) -> Kept {
        let alike =
            |kept: &Kept| kept.tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count().min(kept.memory.len());
        let best = self.kept.iter().enumerate().map(|(i, kept)| (alike(kept), i)).max();
        match best {
            Some((length, index)) if length >= WORTH => {
                let mut kept = self.kept.remove(index);
                // The last token is read again, since its scores were not kept.
                let length = length.min(prompt.len() - 1);
                kept.tokens.truncate(length);
                kept.memory.truncate(length);
                kept
            }
            _ => Kept { tokens: Vec::new(), memory: Memory::default() },
        }
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
        while self.kept.len() > 1 && self.kept.iter().map(|kept| kept.tokens.len()).sum::<usize>() > KEPT {
            self.kept.remove(0);
        }
    }

    fn read(&self, kept: &mut Kept, prompt: &[u32], check: &dyn Fn() -> Result<(), Broken>) -> Result<Tensor, Broken> {
        let mut scores = None;
        while kept.tokens.len() < prompt.len() {
            check()?;
            let from = kept.tokens.len();
            let part = &prompt[from..prompt.len().min(from + STRIDE)];
            scores = Some(self.transformer.forward(&mut [Run { memory: &mut kept.memory, tokens: part }])?);
            kept.tokens.extend_from_slice(part);
        }
        scores.ok_or(Broken::Trouble(Trouble::NotGguf("the prompt is empty".into())))
    }

    /// Tokens a second: read, written, written four at a time.
    pub(super) fn speed(&mut self) -> Result<(f64, f64, f64), Trouble> {
        let vocabulary = self.transformer.measures().vocabulary as u32;
        let tokens: Vec<u32> = (0..512u32).map(|i| i * 97 % vocabulary.min(20_000)).collect();
        let mut memory = Memory::default();
        self.transformer.forward(&mut [Run { memory: &mut memory, tokens: &tokens[..32] }])?;
        self.transformer.forward(&mut [Run { memory: &mut memory, tokens: &tokens[..1] }])?;
        let mut memory = Memory::default();
        let rate = |count: usize, start: Instant| count as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        for part in tokens.chunks(STRIDE) {
            self.transformer.forward(&mut [Run { memory: &mut memory, tokens: part }])?;
        }
        let read = rate(tokens.len(), start);
        let start = Instant::now();
        for token in &tokens[..64] {
            self.transformer.forward(&mut [Run { memory: &mut memory, tokens: &[*token] }])?;
        }
        let write = rate(64, start);
        let mut four = [memory.fork()?, memory.fork()?, memory.fork()?, memory.fork()?];
        let start = Instant::now();
        for token in &tokens[..24] {
            let mut runs: Vec<Run<'_>> =
                four.iter_mut().map(|memory| Run { memory, tokens: std::slice::from_ref(token) }).collect();
            self.transformer.forward(&mut runs)?;
        }
        Ok((read, write, rate(24 * 4, start)))
    }
}

/// Chance that can be repeated (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// The next token: the likeliest, or one of the likelier ones by chance.
fn choose(scores: &Tensor, temperature: f32, chance: &mut Chance) -> candle_core::Result<u32> {
    let scores = scores.flatten_all()?.to_vec1::<f32>()?;
    let best = |scores: &[f32]| {
        let start = (0usize, f32::NEG_INFINITY);
        scores.iter().enumerate().fold(start, |best, (i, score)| if *score > best.1 { (i, *score) } else { best })
    };
    let (top, highest) = best(&scores);
    if temperature <= 0.0 || !temperature.is_finite() {
        return Ok(top as u32);
    }
    let mut likely: Vec<(usize, f32)> = scores
        .iter()
        .enumerate()
        .map(|(i, score)| (i, ((score - highest) / temperature).exp()))
        .filter(|(_, weight)| *weight > 1e-4)
        .collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total: f32 = likely.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    let enough = likely.iter().position(|(_, weight)| {
        sum += weight;
        sum >= LIKELY * total
    });
    likely.truncate(enough.map_or(likely.len(), |place| place + 1));
    let total: f32 = likely.iter().map(|(_, weight)| weight).sum();
    let mut left = chance.next() * total;
    for (token, weight) in &likely {
        left -= weight;
        if left <= 0.0 {
            return Ok(*token as u32);
        }
    }
    Ok(top as u32)
}
