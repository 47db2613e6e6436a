//! How fast the store in a file is, how often it finds what is nearest, and how large it gets.
//!
//! ```text
//! QUERYMEND_MINILM=FOLDER cargo bench --profile release -p querymend-memory --bench memory -- SPIDER [SIZES]
//! ```
//!
//! SPIDER is a folder with Spider's `train_questions.csv` and `questions_dev.json`; SIZES are numbers of examples, 10000 100000
//! 1000000 if none are given, and `ranking` measures how often a question of the same shape is shown. FOLDER holds
//! all-MiniLM-L6-v2. With `QUERYMEND_CHROMA`, a Python that has chromadb, `scripts/chroma_speed.py` is run on the same vectors.
//!
//! There are not a million questions to be had, so they are made: number n is the n-th training question (from the beginning
//! again after the last), with a fifth of its words swapped for those of another question; its vector is MiniLM's of the one,
//! plus up to 0.7 times MiniLM's of the other, plus noise of length 0.2, brought to length one. What is asked are questions of
//! the dev set with MiniLM's vectors as they are.

// A benchmark prints its result and stops where its input is wrong.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_memory::vector_index::MIN_INDEXED_ROWS;
use querymend_memory::{Example, ExampleQuery, ExampleStore, FileStore, example_id, import, template_hash};
use querymend_model::{Embedder, MiniLm, StaticEmbedder, similarity};
use serde::Deserialize;

const NUMBERS: usize = 384;
const ASKED: usize = 200;

#[derive(Deserialize)]
struct Dev {
    question: String,
    gold: String,
    db_id: String,
}

struct Spider {
    train: Vec<Example>,
    dev: Vec<Example>,
}

impl Spider {
    fn read(folder: &Path) -> Self {
        let train = import::read_file(&folder.join("train_questions.csv"), "", "sqlite").unwrap();
        let dev: Vec<Dev> =
            serde_json::from_str(&fs::read_to_string(folder.join("questions_dev.json")).unwrap()).unwrap();
        let dev = dev.iter().map(|one| Example::new(&one.question, &one.gold, &one.db_id, "sqlite")).collect();
        Self { train, dev }
    }
}

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Between 0 and 1.
    fn share(&mut self) -> f32 {
        self.next() as f32 / (1_u64 << 31) as f32
    }
}

/// The questions that are made, and their vectors. A question says its own number.
struct Made {
    spider: Spider,
    train: Vec<Vec<f32>>,
    dev: Vec<Vec<f32>>,
}

impl Made {
    fn other(&self, n: usize) -> (Dice, usize) {
        let mut dice = Dice(n as u64 + 1);
        dice.next();
        let other = dice.below(self.spider.train.len());
        (dice, other)
    }

    fn example(&self, n: usize) -> Example {
        let (mut dice, other) = self.other(n);
        let base = &self.spider.train[n % self.spider.train.len()];
        let others: Vec<&str> = self.spider.train[other].question.split_whitespace().collect();
        let words: Vec<&str> = base
            .question
            .split_whitespace()
            .map(|word| if dice.below(5) == 0 { others[dice.below(others.len())] } else { word })
            .collect();
        Example::new(&format!("{} #{n}", words.join(" ")), &base.sql, &base.database, "sqlite")
    }

    fn vector(&self, n: usize) -> Vec<f32> {
        let (mut dice, other) = self.other(n);
        let share = 0.7 * dice.share();
        // Uniform numbers between -1 and 1 have a mean square of a third.
        let noise = 0.2 * (3.0 / NUMBERS as f32).sqrt();
        let base = &self.train[n % self.train.len()];
        let mut vector: Vec<f32> = base
            .iter()
            .zip(&self.train[other])
            .map(|(base, other)| base + share * other + noise * (2.0 * dice.share() - 1.0))
            .collect();
        let length = similarity(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|number| *number /= length);
        vector
    }
}

impl Embedder for Made {
    fn name(&self) -> &str {
        "made"
    }

    fn dimensions(&self) -> Option<usize> {
        Some(NUMBERS)
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> querymend_model::BoxFuture<'a, Vec<Vec<f32>>> {
        let vector = |text: &&str| match text.rsplit_once('#').and_then(|(_, n)| n.parse().ok()) {
            Some(n) => self.vector(n),
            None => self.dev[self.spider.dev.iter().position(|one| one.question == *text).unwrap()].clone(),
        };
        Box::pin(async move { Ok(texts.iter().map(vector).collect()) })
    }
}

/// MiniLM's vectors of all questions, kept in a file because they take minutes.
fn taught(spider: &Spider, kept: &Path) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let (train, dev) = (spider.train.len(), spider.dev.len());
    let mut numbers: Vec<f32> = fs::read(kept)
        .map_or(Vec::new(), |bytes| bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect());
    if numbers.len() != (train + dev) * NUMBERS {
        let folder = std::env::var_os("QUERYMEND_MINILM").unwrap_or_else(|| panic!("QUERYMEND_MINILM names no folder"));
        let model = MiniLm::read(folder.as_ref()).unwrap();
        let texts: Vec<&str> = spider.train.iter().chain(&spider.dev).map(|one| one.question.as_str()).collect();
        numbers = texts.chunks(32).flat_map(|part| model.vectors(part).unwrap()).flatten().collect();
        fs::write(kept, numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    }
    let mut all: Vec<Vec<f32>> = numbers.chunks(NUMBERS).map(<[f32]>::to_vec).collect();
    let asked = all.split_off(train);
    (all, asked)
}

fn sought(one: &Example) -> ExampleQuery<'_> {
    ExampleQuery {
        question: &one.question,
        database: &one.database,
        dialect: Some("sqlite"),
        only_database: false,
        only_verified: false,
        limit: 5,
    }
}

fn shown(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("{:.0} µs (95 of 100: {:.0} µs)", at(0.5), at(0.95))
}

fn memory_of_this() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("?");
    line.trim().to_string()
}

fn bytes_of(path: &Path) -> u64 {
    ["", "-wal"].iter().filter_map(|end| fs::metadata(format!("{}{end}", path.display())).ok()).map(|of| of.len()).sum()
}

async fn built(store: &FileStore, count: usize) -> f64 {
    let start = Instant::now();
    loop {
        let size = store.size();
        if size.examples == count && !size.is_building && (size.unindexed <= 2_048 || count < MIN_INDEXED_ROWS) {
            return start.elapsed().as_secs_f64();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn measured(made: &Arc<Made>, count: usize, folder: &Path) {
    println!("== {count} examples, {NUMBERS} numbers");
    let path = folder.join(format!("{count}.db"));
    let embedder: Arc<dyn Embedder> = Arc::<Made>::clone(made);
    let store = FileStore::open(&path, Arc::clone(&embedder)).await.unwrap();
    let mut adding = 0.0;
    for from in (0..count).step_by(50_000) {
        let examples: Vec<Example> = (from..count.min(from + 50_000)).map(|n| made.example(n)).collect();
        let start = Instant::now();
        store.add(&examples).await.unwrap();
        adding += start.elapsed().as_secs_f64();
    }
    println!("added in parts of 50,000: {:.0} a second (with the making of their vectors)", count as f64 / adding);
    let asked: Vec<&Example> = made.spider.dev.iter().step_by(made.spider.dev.len() / ASKED).take(ASKED).collect();
    let start = Instant::now();
    store.search(&sought(asked[0])).await.unwrap();
    println!("first search after adding: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("index: {:.1} s in the background", built(&store, count).await);
    drop(store);
    let start = Instant::now();
    let store = FileStore::open(&path, embedder).await.unwrap();
    let opened = start.elapsed().as_secs_f64() * 1e3;
    store.search(&sought(asked[0])).await.unwrap();
    println!("opened again: {opened:.1} ms, first answer {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    built(&store, count).await;
    let (mut nearest, mut searched, mut got) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..5 {
        for one in &asked {
            let start = Instant::now();
            let near = store.nearest(&one.question, 5).await.unwrap();
            nearest.push(start.elapsed().as_secs_f64() * 1e6);
            let start = Instant::now();
            store.search(&sought(one)).await.unwrap();
            searched.push(start.elapsed().as_secs_f64() * 1e6);
            if round == 0 {
                got.push(near.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
            }
        }
    }
    println!("nearest five by vectors: {}", shown(nearest));
    println!("search, ranked, with texts: {}", shown(searched));
    let right = right(made, count, &asked);
    let hits: usize = right
        .iter()
        .zip(&got)
        .map(|(right, got)| {
            right
                .iter()
                .filter(|(n, _)| {
                    let one = made.example(*n);
                    got.contains(&example_id(&one.question, &one.database))
                })
                .count()
        })
        .sum();
    println!("of the five nearest by all 32 bits: {:.4} found", hits as f64 / (5 * asked.len()) as f64);
    let size = store.size();
    println!(
        "memory: {} MB of the store, {} of this program; file {} MB",
        size.memory_bytes >> 20,
        memory_of_this(),
        bytes_of(&path) >> 20
    );
    let mut times = Vec::new();
    for at in 0..100 {
        let one = Example::new(&format!("How many parcels? #{}", count + at), "SELECT 1", "shop", "sqlite");
        let start = Instant::now();
        store.add(std::slice::from_ref(&one)).await.unwrap();
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    println!("one durable addition: {}", shown(times));
    drop(store);
    beside(made, count, &asked, &right, folder);
    let _ = fs::remove_file(&path);
}

/// The five that are nearest by all bits, for each question.
fn right(made: &Made, count: usize, asked: &[&Example]) -> Vec<Vec<(usize, f32)>> {
    let vectors: Vec<Vec<f32>> = asked.iter().map(|one| pollster(made.embed(&[one.question.as_str()]))).collect();
    let mut best: Vec<Vec<(usize, f32)>> = vec![Vec::new(); asked.len()];
    for n in 0..count {
        let vector = made.vector(n);
        for (best, asked) in best.iter_mut().zip(&vectors) {
            let near = dot(&vector, asked);
            if best.len() < 5 || near > best[4].1 {
                best.push((n, near));
                best.sort_by(|a, b| b.1.total_cmp(&a.1));
                best.truncate(5);
            }
        }
    }
    best
}

/// Sixteen sums at once, which the compiler makes vector instructions of.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
        for at in 0..16 {
            sums[at] += a[at] * b[at];
        }
    }
    sums.iter().sum()
}

fn pollster(answer: querymend_model::BoxFuture<'_, Vec<Vec<f32>>>) -> Vec<f32> {
    let mut answer = answer;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match answer.as_mut().poll(&mut context) {
        std::task::Poll::Ready(vectors) => vectors.unwrap().remove(0),
        std::task::Poll::Pending => panic!("made vectors never wait"),
    }
}

/// Chroma with the same vectors, texts and questions.
fn beside(made: &Made, count: usize, asked: &[&Example], right: &[Vec<(usize, f32)>], folder: &Path) {
    let Some(python) = std::env::var_os("QUERYMEND_CHROMA") else { return };
    let write = |name: &str, vectors: &mut dyn Iterator<Item = Vec<f32>>| {
        let mut file = std::io::BufWriter::new(fs::File::create(folder.join(name)).unwrap());
        for number in vectors.flatten() {
            std::io::Write::write_all(&mut file, &number.to_le_bytes()).unwrap();
        }
    };
    write("rows.f32", &mut (0..count).map(|n| made.vector(n)));
    write("asked.f32", &mut asked.iter().map(|one| pollster(made.embed(&[one.question.as_str()]))));
    let right: Vec<Vec<usize>> = right.iter().map(|five| five.iter().map(|(n, _)| *n).collect()).collect();
    fs::write(folder.join("right.json"), serde_json::to_string(&right).unwrap()).unwrap();
    let texts: Vec<String> = (0..made.spider.train.len()).map(|n| made.example(n).question).collect();
    fs::write(folder.join("texts.json"), serde_json::to_string(&texts).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/chroma_speed.py");
    let done = Command::new(python).arg(script).arg(folder).arg(count.to_string()).status().unwrap();
    assert!(done.success());
}

/// How often a question of the same shape is shown, and how fast questions are added.
async fn ranking(spider: &Spider, folder: &Path) {
    println!("== ranking: Spider train -> dev, the embedder that is compiled in");
    let store = FileStore::open(folder.join("ranking.db"), Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap();
    let start = Instant::now();
    store.add(&spider.train).await.unwrap();
    println!("added: {:.0} a second", spider.train.len() as f64 / start.elapsed().as_secs_f64());
    let (mut by_vectors, mut ranked, mut times) = ([0; 2], [0; 2], Vec::new());
    for one in &spider.dev {
        let wanted = template_hash(&one.sql);
        let near = store.nearest(&one.question, 5).await.unwrap();
        let start = Instant::now();
        let found = store.search(&sought(one)).await.unwrap();
        times.push(start.elapsed().as_secs_f64() * 1e6);
        let mut skeletons = Vec::new();
        for (id, _) in near {
            skeletons.push(template_hash(&store.get(&id).await.unwrap().unwrap().sql));
        }
        let found: Vec<u64> = found.iter().map(|found| template_hash(&found.example.sql)).collect();
        for (hits, skeletons) in [(&mut by_vectors, skeletons), (&mut ranked, found)] {
            hits[0] += usize::from(skeletons.first() == Some(&wanted));
            hits[1] += usize::from(skeletons.contains(&wanted));
        }
    }
    let share = |hits: usize| 100.0 * hits as f64 / spider.dev.len() as f64;
    println!("same skeleton, by vectors: first {:.1} %, in five {:.1} %", share(by_vectors[0]), share(by_vectors[1]));
    println!("same skeleton, ranked: first {:.1} %, in five {:.1} %", share(ranked[0]), share(ranked[1]));
    println!("search: {}", shown(times));
    // The same SQL in other words, of the own database: each question is taken out, asked, and put back.
    let (mut asked, mut hits) = (0, 0);
    for one in spider.train.iter().step_by(13) {
        let same = |other: &Example| other.database == one.database && other.sql == one.sql && other.id != one.id;
        if !spider.train.iter().any(same) {
            continue;
        }
        store.remove(&[&one.id]).await.unwrap();
        let found = store.search(&sought(one)).await.unwrap();
        store.add(std::slice::from_ref(one)).await.unwrap();
        asked += 1;
        hits += usize::from(found.iter().any(|found| same(&found.example)));
    }
    println!("same query asked in other words, in five: {:.1} % of {asked}", 100.0 * hits as f64 / asked as f64);
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let Some((spider, what)) = arguments.split_first() else {
        println!("no folder of Spider was given, so nothing is measured");
        return;
    };
    let spider = Spider::read(Path::new(spider));
    let folder = tempfile::tempdir().unwrap();
    if what.is_empty() || what.iter().any(|word| word == "ranking") {
        ranking(&spider, folder.path()).await;
        bulk(&spider, folder.path()).await;
    }
    let sizes: Vec<usize> = what.iter().filter_map(|word| word.parse().ok()).collect();
    let sizes = if what.is_empty() { vec![10_000, 100_000, 1_000_000] } else { sizes };
    if sizes.is_empty() {
        return;
    }
    let kept: PathBuf = std::env::temp_dir().join("querymend-minilm-spider.f32");
    let (train, dev) = taught(&spider, &kept);
    let made = Arc::new(Made { spider, train, dev });
    for size in sizes {
        measured(&made, size, folder.path()).await;
    }
}

/// Many additions with the embedder that is compiled in.
async fn bulk(spider: &Spider, folder: &Path) {
    let store = FileStore::open(folder.join("bulk.db"), Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap();
    let many: Vec<Example> = (0..100_000)
        .map(|n| {
            let one = &spider.train[n % spider.train.len()];
            Example::new(&format!("{} in {n}", one.question), &one.sql, &one.database, "sqlite")
        })
        .collect();
    let start = Instant::now();
    store.add(&many).await.unwrap();
    println!("100,000 added at once, embedded: {:.0} a second", many.len() as f64 / start.elapsed().as_secs_f64());
}
