//! Fuzz target runner: runs a corpus of seed inputs, then inputs mutated from it,
//! deterministically.
//!
//! A target is a test next to the code it fuzzes: it provides seed inputs and an invariant that
//! must hold for each input. Under `cargo test` it runs its corpus and a bounded number of mutated
//! inputs. `scripts/fuzz.sh` runs targets for any length of time; with coverage feedback
//! (docs/design/fuzzing.md), an input that reaches new code is mutated further.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::coverage;
use crate::random::Random;

/// Maximum number of distinct failures before a long run ends.
const MAX_FAILURES: usize = 12;

/// Fuzz target.
pub struct FuzzTarget {
    name: &'static str,
    folder: PathBuf,
    seeds: Vec<Vec<u8>>,
    inputs: u64,
    all_threads: bool,
}

/// Creates the next input from a pool of inputs.
pub type InputGenerator<'m> = &'m mut dyn FnMut(&mut Random, &[Vec<u8>]) -> Vec<u8>;

impl FuzzTarget {
    /// Creates a target of a crate, given its folder as `env!("CARGO_MANIFEST_DIR")`. Its corpus is
    /// in `tests/fuzz/<name>`.
    pub fn new(name: &'static str, of_crate: &str) -> Self {
        let folder = PathBuf::from(of_crate).join("tests/fuzz").join(name);
        Self { name, folder, seeds: Vec::new(), inputs: 1_000, all_threads: false }
    }

    /// Adds seed inputs.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Sets the number of mutated inputs under `cargo test`.
    #[must_use]
    pub fn inputs(mut self, inputs: u64) -> Self {
        self.inputs = inputs;
        self
    }

    /// Also counts a panic of any other thread as a failure. Nothing else may run in the same
    /// process.
    #[must_use]
    pub fn all_threads(mut self) -> Self {
        self.all_threads = true;
        self
    }

    /// Runs the corpus, then inputs that `make` creates from it. `check` panics if an input
    /// violates the invariant.
    ///
    /// `QUERYMEND_FUZZ_SECONDS` makes it a long run, `QUERYMEND_FUZZ_INPUTS` sets the number of
    /// inputs, `QUERYMEND_FUZZ_SEED` the seed; failing inputs of a long run are written to the
    /// folder `QUERYMEND_FUZZ_FOUND`.
    pub fn run(self, make: InputGenerator<'_>, check: &dyn Fn(&[u8])) {
        let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
        let seconds = number("QUERYMEND_FUZZ_SECONDS");
        let most = number("QUERYMEND_FUZZ_INPUTS").unwrap_or(if seconds.is_some() { u64::MAX } else { self.inputs });
        let seed = number("QUERYMEND_FUZZ_SEED").unwrap_or_else(|| fnv1a(self.name.as_bytes()));
        let until = seconds.map(Duration::from_secs);
        let mut random = Random::new(seed);
        let mut pool = self.seeds.clone();
        pool.extend(self.corpus());
        assert!(!pool.is_empty(), "{}: there is nothing to begin with in {}", self.name, self.folder.display());
        let begun = Instant::now();
        let mut run = FuzzRun {
            target: &self,
            seed,
            failures: Vec::new(),
            inputs: 0,
            slowest: Duration::ZERO,
            is_long_run: seconds.is_some(),
        };
        for input in &pool {
            run.run_input(input, check);
        }
        let mut made = 0;
        while made < most && until.is_none_or(|until| begun.elapsed() < until) && run.failures.len() < MAX_FAILURES {
            made += 1;
            let input = make(&mut random, &pool);
            if run.run_input(&input, check) {
                pool.push(input);
            }
        }
        run.finish(begun.elapsed(), pool.len());
    }

    /// Returns the stored inputs, sorted by file name.
    fn corpus(&self) -> Vec<Vec<u8>> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
        files.sort();
        files.iter().filter_map(|file| fs::read(file).ok()).collect()
    }
}

struct FuzzRun<'f> {
    target: &'f FuzzTarget,
    seed: u64,
    failures: Vec<String>,
    inputs: u64,
    slowest: Duration,
    is_long_run: bool,
}

impl FuzzRun<'_> {
    /// Runs one input; returns whether it reached new code.
    fn run_input(&mut self, input: &[u8], check: &dyn Fn(&[u8])) -> bool {
        self.inputs += 1;
        let begun = Instant::now();
        let check: &dyn Fn(&[u8]) = match self.target.all_threads {
            true => &|input| {
                check(input);
                let elsewhere = OTHER_THREAD_PANIC.lock().ok().and_then(|mut elsewhere| elsewhere.take());
                assert!(elsewhere.is_none(), "another thread panicked: {}", elsewhere.unwrap_or_default());
            },
            false => check,
        };
        let wrong = failure_message(input, check);
        let took = begun.elapsed();
        if took > self.slowest {
            self.slowest = took;
            self.save_input("slowest", input);
        }
        if let Some(why) = wrong {
            self.on_failure(input, &why, check);
        }
        coverage::has_new_coverage()
    }

    fn on_failure(&mut self, input: &[u8], why: &str, check: &dyn Fn(&[u8])) {
        // The same assertion with other numbers is the same failure.
        let kind: String = why.chars().filter(|c| !c.is_ascii_digit()).take(48).collect();
        if self.failures.contains(&kind) {
            return;
        }
        let least = minimize(input, &kind, check);
        let shown = String::from_utf8_lossy(&least).into_owned();
        let (name, seed, number) = (self.target.name, self.seed, self.inputs);
        let told = format!(
            "{name}: input {number} of seed {seed}: {why}\n--- the input, {} bytes ---\n{shown:?}",
            least.len()
        );
        assert!(self.is_long_run, "{told}");
        self.save_input(&format!("{:016x}", fnv1a(&least)), &least);
        eprintln!("{told}");
        self.failures.push(kind);
    }

    fn save_input(&self, what: &str, input: &[u8]) {
        let Some(folder) = env::var_os("QUERYMEND_FUZZ_FOUND").filter(|_| self.is_long_run) else { return };
        let folder = PathBuf::from(folder).join(self.target.name);
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(what), input));
        assert!(written.is_ok(), "{} cannot be written: {written:?}", folder.display());
    }

    fn finish(self, took: Duration, pool: usize) {
        if self.is_long_run {
            let (inputs, found, slowest) = (self.inputs, self.failures.len(), self.slowest.as_millis());
            let (reached, seconds, name) = (coverage::covered_count(), took.as_secs(), self.target.name);
            eprintln!("fuzz | {name} | {inputs} | {seconds} | {reached} | {pool} | {slowest} | {found}");
            assert!(self.failures.is_empty(), "{name}: {found} findings");
        }
    }
}

thread_local! {
    /// `true` while this thread runs an input, whose panic is caught.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// Location of the last panic of this thread.
    static LAST: Cell<String> = const { Cell::new(String::new()) };
}

/// Location of the last panic of another thread.
static OTHER_THREAD_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs a check; returns the panic message if it fails.
fn failure_message(input: &[u8], check: &dyn Fn(&[u8])) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|place| format!("{}:{}: ", place.file(), place.line())).unwrap_or_default();
            if QUIET.get() {
                LAST.set(place);
            } else {
                if let Ok(mut elsewhere) = OTHER_THREAD_PANIC.lock() {
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

/// Minimizes an input that fails with the same message, by removing chunks, large ones first.
fn minimize(input: &[u8], kind: &str, check: &dyn Fn(&[u8])) -> Vec<u8> {
    let same = |input: &[u8]| {
        let why = failure_message(input, check).unwrap_or_default();
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

/// Returns the FNV-1a hash.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate_text;

    #[test]
    fn finds_and_minimizes_a_failing_input() {
        let check = |input: &[u8]| assert!(!input.windows(2).any(|two| two == b"QX"), "there is a QX");
        let target = || FuzzTarget::new("no such folder", "").seeds(["SELECT Q FROM X", "SELECT X"]).inputs(20_000);
        let told = || {
            let run = || target().run(&mut |random, pool| mutate_text(random, pool, &["Q", "X"]), &check);
            let panic = catch_unwind(run).err();
            panic.and_then(|panic| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
        };
        let first = told();
        assert!(first.ends_with("--- the input, 2 bytes ---\n\"QX\""), "{first}");
        assert!(first.contains("there is a QX"), "{first}");
        assert_eq!(told(), first, "the same inputs come each time");
        target().run(&mut |random, pool| mutate_text(random, pool, &[]), &|_| ());
    }
}
