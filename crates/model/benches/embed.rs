//! What a vector costs, and what it is worth: time for one question, and how often one of the five nearest questions has
//! the same SQL skeleton.
//!
//! `cargo bench -p querymend-model --bench embed` measures the time. With a file of `scripts/embedder/measure.py SPIDER FILE.json`
//! as its argument it measures retrieval too, and with `QUERYMEND_MINILM` (a folder) it shows all-MiniLM-L6-v2 beside it.

// A benchmark prints its result and stops where its input is wrong.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use querymend_model::{MiniLm, StaticEmbedder, similarity};
use serde::Deserialize;

/// Questions and the numbers of their skeletons.
#[derive(Deserialize)]
struct Sets {
    store: Vec<(String, usize)>,
    asked: Vec<(String, usize)>,
}

fn main() {
    let file = std::env::args().skip(1).find(|argument| argument.ends_with(".json"));
    let sets: Sets = match &file {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        None => Sets {
            store: Vec::new(),
            asked: [
                "How many singers do we have?",
                "What are the names of the countries with more than three car makers?",
                "Show the average age of students for each major, from the highest to the lowest.",
            ]
            .map(|question| (question.to_owned(), 0))
            .into(),
        },
    };
    let texts = |part: &[(String, usize)]| -> Vec<String> { part.iter().map(|(text, _)| text.clone()).collect() };
    let (store, asked) = (texts(&sets.store), texts(&sets.asked));

    let start = Instant::now();
    let embedder = StaticEmbedder::builtin().unwrap();
    println!("static: {:.2} ms for the first use", start.elapsed().as_secs_f64() * 1e3);
    let mut times = Vec::new();
    for _ in 0..20_000_usize.div_ceil(asked.len()) {
        for text in &asked {
            let start = Instant::now();
            black_box(embedder.vector(black_box(text)));
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    shown("static", times);
    let vector = |text: &String| embedder.vector(text);
    rate("static", &sets, &store.iter().map(vector).collect::<Vec<_>>(), &asked.iter().map(vector).collect::<Vec<_>>());

    let Some(folder) = std::env::var_os("QUERYMEND_MINILM") else {
        println!("minilm: QUERYMEND_MINILM names no folder, so it is left out");
        return;
    };
    let start = Instant::now();
    let model = MiniLm::read(folder.as_ref()).unwrap();
    println!("minilm: {:.2} ms for the first use", start.elapsed().as_secs_f64() * 1e3);
    let times = asked.iter().cycle().take(200).map(|text| {
        let start = Instant::now();
        black_box(model.vectors(&[text.as_str()]).unwrap());
        start.elapsed().as_secs_f64() * 1e6
    });
    shown("minilm", times.collect());
    let vectors = |texts: &[String]| model.vectors(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    rate("minilm", &sets, &vectors(&store), &vectors(&asked));
}

fn shown(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{name}: one question {:.1} µs (median), {:.1} µs (95 of 100)", at(0.5), at(0.95));
}

fn rate(name: &str, sets: &Sets, store: &[Vec<f32>], asked: &[Vec<f32>]) {
    if store.is_empty() {
        return;
    }
    let hit = |top: usize| {
        let hits = asked.iter().zip(&sets.asked).filter(|(vector, (_, skeleton))| {
            let mut near: Vec<(f32, usize)> = store.iter().map(|other| similarity(vector, other)).zip(0..).collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            near.iter().take(top).any(|(_, at)| sets.store[*at].1 == *skeleton)
        });
        100.0 * hits.count() as f64 / asked.len() as f64
    };
    println!("{name}: same skeleton first {:.1} %, among the nearest five {:.1} %", hit(1), hit(5));
}
