//! Writing: a prompt is read, then one token after the other is chosen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Tensor;

use super::forward::{Memory, Run, STRIDE, Transformer};
use super::tokens::Tokens;
use super::trouble::Trouble;
use super::weights::Source;
use super::{LocalFiles, names, prepared, statement};
use crate::error::{Error, Wait};
use crate::request::{Reply, Request, Stopped, Usage};

/// How many tokens of earlier prompts stay in memory, so that questions about several databases in turn are all answered
/// quickly: about ten small databases. One takes 25 kB in a model of half a billion numbers.
const KEPT: usize = 8_192;

/// A prompt that begins like a kept one for at least this long goes on from there.
const WORTH: usize = 16;

/// The share of the likeliest tokens that chance may choose from, where it may.
const LIKELY: f32 = 0.95;

/// How freely further texts are written where the first one is not.
const FREEDOM: f32 = 0.7;

/// How many tokens are tried for one that is allowed.
const TRIED: usize = 64;

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

/// One text that is being written.
struct Voice {
    kept: Kept,
    temperature: f32,
    chance: Chance,
    written: Vec<u32>,
    text: String,
    stopped: Stopped,
    over: bool,
}

impl Voice {
    fn new(kept: Kept, temperature: f32, seed: u64) -> Self {
        let chance = Chance(seed);
        let (written, text, stopped) = (Vec::new(), String::new(), Stopped::Length);
        Self { kept, temperature, chance, written, text, stopped, over: false }
    }
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
        let scores = match read {
            Ok(scores) => scores,
            Err(broken) => {
                self.keep(kept);
                return Err(broken);
            }
        };
        let room = (self.context - prompt.len()).min(request.max_tokens as usize);
        let mut voices = vec![Voice::new(kept, request.temperature, request.seed.unwrap_or(0x5EED))];
        for further in 0..request.more {
            let first = &voices[0].kept;
            let copy = Kept { tokens: first.tokens.clone(), memory: first.memory.fork()? };
            let temperature = if request.temperature > 0.0 { request.temperature } else { FREEDOM };
            voices.push(Voice::new(copy, temperature, request.seed.unwrap_or(0x5EED) + 1 + u64::from(further)));
        }
        let mut told = 0;
        let result = self.speak(&mut voices, &scores, room, request, &check, &mut |text: &str| {
            if text.len() > told && text.is_char_boundary(told) {
                watch(&text[told..]);
                told = text.len();
            }
        });
        let output = voices.iter().map(|voice| voice.written.len() as u64).sum();
        let mut said = voices.into_iter();
        let Some(first) = said.next() else { return Err(Broken::Dropped) };
        self.keep(first.kept);
        result?;
        if first.text.len() > told && first.text.is_char_boundary(told) {
            watch(&first.text[told..]);
        }
        let more = said.map(|voice| voice.text).filter(|text| !text.trim().is_empty()).collect();
        let usage = Usage { input: prompt.len() as u64, output, cost_usd: Some(0.0) };
        Ok(Reply { text: first.text, more, usage, stopped: first.stopped, model: name.to_owned() })
    }

    /// Has every voice write until it is over. `told` hears the first one.
    fn speak(
        &self,
        voices: &mut [Voice],
        scores: &Tensor,
        room: usize,
        request: &Request,
        check: &dyn Fn() -> Result<(), Broken>,
        told: &mut dyn FnMut(&str),
    ) -> Result<(), Broken> {
        // All of them go on from the same prompt, so that the first scores are the same.
        let first = scores.flatten_all()?.to_vec1::<f32>()?;
        let mut rows = vec![first; voices.len()];
        loop {
            check()?;
            let mut scores = rows.into_iter();
            for voice in voices.iter_mut().filter(|voice| !voice.over) {
                if let Some(scores) = scores.next() {
                    self.say(voice, scores, room, request);
                }
            }
            // A character may come in several tokens; until it is whole it reads as the replacement character.
            if let Some(voice) = voices.first().filter(|voice| !voice.over && !voice.text.ends_with('\u{FFFD}')) {
                told(&voice.text);
            }
            let mut runs: Vec<Run<'_>> = Vec::new();
            for voice in voices.iter_mut().filter(|voice| !voice.over) {
                let last = voice.written.len() - 1;
                runs.push(Run { memory: &mut voice.kept.memory, tokens: &voice.written[last..] });
            }
            if runs.is_empty() {
                return Ok(());
            }
            rows = self.transformer.forward(&mut runs)?.to_vec2::<f32>()?;
            for voice in voices.iter_mut().filter(|voice| !voice.over) {
                voice.kept.tokens.extend(voice.written.last());
            }
        }
    }

    /// The next token of a voice.
    fn say(&self, voice: &mut Voice, mut scores: Vec<f32>, room: usize, request: &Request) {
        if voice.written.len() >= room {
            voice.over = true;
            return;
        }
        let names = request.names.as_deref().filter(|_| request.sql);
        let allowed = |token: u32| {
            let Some(names) = names else { return true };
            if self.tokens.is_end(token) {
                return names::fits(&voice.text, names, true);
            }
            let mut longer = voice.written.clone();
            longer.push(token);
            let text = self.tokens.text(&longer);
            text.ends_with('\u{FFFD}') || names::fits(&text, names, false)
        };
        let token = choose(&mut scores, voice.temperature, &mut voice.chance, &allowed);
        if self.tokens.is_end(token) {
            (voice.over, voice.stopped) = (true, Stopped::End);
            return;
        }
        voice.written.push(token);
        voice.text = self.tokens.text(&voice.written);
        if let Some(end) = self.ended(&voice.text, request) {
            voice.text.truncate(end);
            (voice.over, voice.stopped) = (true, Stopped::End);
        }
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

/// The next token: the likeliest that is allowed, or one of the likelier ones by chance. Where nothing that is at all likely is
/// allowed, the model has its way: the critic reads what it wrote in any case.
fn choose(scores: &mut [f32], temperature: f32, chance: &mut Chance, allowed: &dyn Fn(u32) -> bool) -> u32 {
    let best = |scores: &[f32]| {
        let start = (0usize, f32::NEG_INFINITY);
        scores.iter().enumerate().fold(start, |best, (i, score)| if *score > best.1 { (i, *score) } else { best })
    };
    let (top, highest) = best(scores);
    if temperature <= 0.0 || !temperature.is_finite() {
        let mut token = top;
        for _ in 0..TRIED {
            if allowed(token as u32) {
                return token as u32;
            }
            scores[token] = f32::NEG_INFINITY;
            token = best(scores).0;
        }
        return top as u32;
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
    while !likely.is_empty() {
        let mut left = chance.next() * likely.iter().map(|(_, weight)| weight).sum::<f32>();
        let hit = likely.iter().position(|(_, weight)| {
            left -= weight;
            left <= 0.0
        });
        let (token, _) = likely.remove(hit.unwrap_or(0));
        if allowed(token as u32) {
            return token as u32;
        }
    }
    choose(scores, 0.0, chance, allowed)
}
