//! Runs a fuzz target: a corpus of whole inputs, then inputs mutated from it, the same ones each time.
//!
//! A target is a test beside the code that it tries: it gives whole inputs to begin with and says what must hold for each. Under
//! `cargo test` it reads its corpus and a bounded number of inputs made from it. `scripts/fuzz.sh` runs targets for as long as one
//! likes; with coverage counted (docs/fuzzing.md), an input that reached code which none had reached before is mutated further.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::coverage;
use crate::random::Random;

/// How many inputs in a long run may fail before it ends: by then there is enough to do.
const ENOUGH: usize = 12;

/// A target.
pub struct Fuzz {
    name: &'static str,
    folder: PathBuf,
    seeds: Vec<Vec<u8>>,
    inputs: u64,
    everywhere: bool,
}

/// Makes the next input out of those that there are.
pub type Make<'m> = &'m mut dyn FnMut(&mut Random, &[Vec<u8>]) -> Vec<u8>;

impl Fuzz {
    /// A target of a crate, whose folder is given as `env!("CARGO_MANIFEST_DIR")`. Its corpus lies in `tests/fuzz/<name>`.
    pub fn new(name: &'static str, of_crate: &str) -> Self {
        let folder = PathBuf::from(of_crate).join("tests/fuzz").join(name);
        Self { name, folder, seeds: Vec::new(), inputs: 1_000, everywhere: false }
    }

    /// Adds whole inputs.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// How many inputs are made under `cargo test`.
    #[must_use]
    pub fn inputs(mut self, inputs: u64) -> Self {
        self.inputs = inputs;
        self
    }

    /// A panic of any other thread counts as well. Then nothing else may run in the same process.
    #[must_use]
    pub fn everywhere(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Reads the corpus, then inputs that `make` makes of it. `check` panics if something is wrong with one.
    ///
    /// `QUERYMEND_FUZZ_SECONDS` makes it a long run, `QUERYMEND_FUZZ_INPUTS` says how many inputs, `QUERYMEND_FUZZ_SEED` which
    /// ones; what fails in a long run is written to the folder `QUERYMEND_FUZZ_FOUND`.
    pub fn run(self, make: Make<'_>, check: &dyn Fn(&[u8])) {
        let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
        let seconds = number("QUERYMEND_FUZZ_SECONDS");
        let most = number("QUERYMEND_FUZZ_INPUTS").unwrap_or(if seconds.is_some() { u64::MAX } else { self.inputs });
        let seed = number("QUERYMEND_FUZZ_SEED").unwrap_or_else(|| hash(self.name.as_bytes()));
        let until = seconds.map(Duration::from_secs);
        let mut random = Random::new(seed);
        let mut pool = self.seeds.clone();
        pool.extend(self.corpus());
        assert!(!pool.is_empty(), "{}: there is nothing to begin with in {}", self.name, self.folder.display());
        let begun = Instant::now();
        let mut run =
            Run { target: &self, seed, found: Vec::new(), inputs: 0, slowest: Duration::ZERO, long: seconds.is_some() };
        for input in &pool {
            run.try_one(input, check);
        }
        let mut made = 0;
        while made < most && until.is_none_or(|until| begun.elapsed() < until) && run.found.len() < ENOUGH {
            made += 1;
            let input = make(&mut random, &pool);
            if run.try_one(&input, check) {
                pool.push(input);
            }
        }
        run.end(begun.elapsed(), pool.len());
    }

    /// The inputs that are kept, by name.
    fn corpus(&self) -> Vec<Vec<u8>> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
        files.sort();
        files.iter().filter_map(|file| fs::read(file).ok()).collect()
    }
}

struct Run<'f> {
    target: &'f Fuzz,
    seed: u64,
    found: Vec<String>,
    inputs: u64,
    slowest: Duration,
    long: bool,
}

impl Run<'_> {
    /// Whether the input reached something new.
    fn try_one(&mut self, input: &[u8], check: &dyn Fn(&[u8])) -> bool {
        self.inputs += 1;
        let begun = Instant::now();
        let check: &dyn Fn(&[u8]) = match self.target.everywhere {
            true => &|input| {
                check(input);
                let elsewhere = ELSEWHERE.lock().ok().and_then(|mut elsewhere| elsewhere.take());
                assert!(elsewhere.is_none(), "another thread panicked: {}", elsewhere.unwrap_or_default());
            },
            false => check,
        };
        let wrong = fails(input, check);
        let took = begun.elapsed();
        if took > self.slowest {
            self.slowest = took;
            self.keep("slowest", input);
        }
        if let Some(why) = wrong {
            self.failed(input, &why, check);
        }
        coverage::is_new()
    }

    fn failed(&mut self, input: &[u8], why: &str, check: &dyn Fn(&[u8])) {
        // The same assertion with other names in it is the same finding.
        let kind: String = why.chars().filter(|c| !c.is_ascii_digit()).take(48).collect();
        if self.found.contains(&kind) {
            return;
        }
        let least = shrunk(input, &kind, check);
        let shown = String::from_utf8_lossy(&least).into_owned();
        let (name, seed, number) = (self.target.name, self.seed, self.inputs);
        let told = format!(
            "{name}: input {number} of seed {seed}: {why}\n--- the input, {} bytes ---\n{shown:?}",
            least.len()
        );
        assert!(self.long, "{told}");
        self.keep(&format!("{:016x}", hash(&least)), &least);
        eprintln!("{told}");
        self.found.push(kind);
    }

    fn keep(&self, what: &str, input: &[u8]) {
        let Some(folder) = env::var_os("QUERYMEND_FUZZ_FOUND").filter(|_| self.long) else { return };
        let folder = PathBuf::from(folder).join(self.target.name);
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(what), input));
        assert!(written.is_ok(), "{} cannot be written: {written:?}", folder.display());
    }

    fn end(self, took: Duration, pool: usize) {
        if self.long {
            let (inputs, found, slowest) = (self.inputs, self.found.len(), self.slowest.as_millis());
            let (reached, seconds, name) = (coverage::reached(), took.as_secs(), self.target.name);
            eprintln!("fuzz | {name} | {inputs} | {seconds} | {reached} | {pool} | {slowest} | {found}");
            assert!(self.found.is_empty(), "{name}: {found} findings");
        }
    }
}

thread_local! {
    /// This thread tries an input, whose panic is no news.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// Where this thread panicked last.
    static LAST: Cell<String> = const { Cell::new(String::new()) };
}

/// Where another thread panicked last.
static ELSEWHERE: Mutex<Option<String>> = Mutex::new(None);

/// What a check says against an input.
fn fails(input: &[u8], check: &dyn Fn(&[u8])) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|place| format!("{}:{}: ", place.file(), place.line())).unwrap_or_default();
            if QUIET.get() {
                LAST.set(place);
            } else {
                if let Ok(mut elsewhere) = ELSEWHERE.lock() {
                    *elsewhere = Some(place);
                }
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| check(input)));
    QUIET.set(false);
    let panic = outcome.err()?;
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
    Some(format!("{}{words}", LAST.take()))
}

/// As short an input as still fails in the same way: pieces are left out, large ones first.
fn shrunk(input: &[u8], kind: &str, check: &dyn Fn(&[u8])) -> Vec<u8> {
    let same = |input: &[u8]| {
        let why = fails(input, check).unwrap_or_default();
        why.chars().filter(|c| !c.is_ascii_digit()).take(48).collect::<String>() == kind
    };
    let (mut least, mut tries) = (input.to_vec(), 0);
    let mut size = least.len() / 2;
    while size > 0 && tries < 2_000 {
        let mut at = 0;
        while at < least.len() && tries < 2_000 {
            let mut shorter = least.clone();
            shorter.drain(at..(at + size).min(least.len()));
            tries += 1;
            if same(&shorter) { least = shorter } else { at += size }
        }
        size /= 2;
    }
    least
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn an_input_that_fails_is_found_and_told_shortest() {
        let check = |input: &[u8]| assert!(!input.windows(2).any(|two| two == b"QX"), "there is a QX");
        let target = || Fuzz::new("no such folder", "").seeds(["SELECT Q FROM X", "SELECT X"]).inputs(20_000);
        let told = || {
            let run = || target().run(&mut |random, pool| text(random, pool, &["Q", "X"]), &check);
            let panic = catch_unwind(run).err();
            panic.and_then(|panic| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
        };
        let first = told();
        assert!(first.ends_with("--- the input, 2 bytes ---\n\"QX\""), "{first}");
        assert!(first.contains("there is a QX"), "{first}");
        assert_eq!(told(), first, "the same inputs come each time");
        target().run(&mut |random, pool| text(random, pool, &[]), &|_| ());
    }
}
