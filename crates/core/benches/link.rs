//! Does linking find the tables of a question in a large catalogue, and how long does it take? The tables of Spider are planted
//! among generated ones, 10,000 in all with 20 columns each on average. Generated tables are made of the same words: names are
//! recombined from real names, one in ten is a real name, columns come from real tables of other databases, and half of them are
//! as narrow as real ones.
//!
//! `QUERYMEND_DATA=FOLDER cargo bench -p querymend --bench link`, where the folder holds `spider/` (tables.json,
//! questions_dev.json, train_questions.csv, database/) and, for the budgets, `bird/`. With `-- tune` it chooses the weights anew,
//! on one half of the databases; with `-- misses` it shows what is not found there; with `-- alone` databases are planted one at a
//! time; with `-- old` the scorer of the beginning is measured too; with `-- speed` little more than how long it takes.

// A measurement talks to whoever started it, and stops where it cannot go on.
#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[path = "link/catalogue.rs"]
mod catalogue;
#[path = "link/old.rs"]
mod old;
#[path = "link/packing.rs"]
mod packing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use catalogue::{Asked, Values};
use querymend::linking::{RankingWeights, SchemaLinker};
use querymend_sql::Policy;
use querymend_sql::dialect::SQLITE;
use querymend_sql::schema::{Column, Schema, Table};

fn main() {
    let Some(data) = std::env::var_os("QUERYMEND_DATA").map(PathBuf::from) else {
        println!("QUERYMEND_DATA names no folder with spider/ in it: nothing is measured");
        return;
    };
    let real = catalogue::spider(&data);
    let dev = catalogue::dev(&data, &real);
    let train = catalogue::train(&data, &real);
    if std::env::args().any(|a| a == "alone") {
        return alone(&data, &real, &dev, &train);
    }
    let planted = real.len();
    let tables = catalogue::planted(real, 10_000, 20);
    let columns: usize = tables.iter().map(|t| t.columns.len()).sum();
    println!(
        "{} tables ({planted} of Spider), {columns} columns; {} dev and {} other questions",
        tables.len(),
        dev.len(),
        train.len()
    );
    let schema = Arc::new(Schema::new(tables).expect("a schema"));
    if std::env::args().any(|a| a == "tune") {
        let tables = SchemaLinker::new(Arc::clone(&schema), &SQLITE, &Policy::default());
        return tune(&tables, &train);
    }
    if std::env::args().any(|a| a == "misses") {
        let tables = SchemaLinker::new(Arc::clone(&schema), &SQLITE, &Policy::default());
        return misses(&tables, &dev, &train);
    }
    if std::env::args().any(|a| a == "speed") {
        let tables = SchemaLinker::new(Arc::clone(&schema), &SQLITE, &Policy::default());
        let found = |q: &Asked| {
            q.rank(tables.rank_tables(&q.question, &[], &RankingWeights::default(), 20).iter().map(|(t, _)| *t))
        };
        println!("dev, among the first 5 / 10 / 20, in %: {}", share(&dev.iter().map(found).collect::<Vec<_>>()));
        return speed(&tables, &dev);
    }
    if !std::env::args().any(|a| a == "packing") {
        recall(&data, &schema, &dev, &train);
    }
    packing::measure(&data);
}

fn recall(data: &Path, schema: &Arc<Schema>, dev: &[Asked], train: &[Asked]) {
    let tables = SchemaLinker::new(Arc::clone(schema), &SQLITE, &Policy::default());
    let began = Instant::now();
    let bytes = tables.index_bytes();
    println!("index: {:.0} ms to build, {:.1} MB", began.elapsed().as_secs_f64() * 1e3, bytes as f64 / 1e6);
    changed(&tables, schema);

    let values = Values::read(data);
    let sets: Vec<(&str, Vec<&Asked>)> = vec![
        ("dev", dev.iter().collect()),
        ("dev, weights' half", dev.iter().filter(|q| !q.held_out).collect()),
        ("dev, held out", dev.iter().filter(|q| q.held_out).collect()),
        ("train, weights' half", train.iter().filter(|q| !q.held_out).step_by(5).collect()),
        ("train, held out", train.iter().filter(|q| q.held_out).step_by(5).collect()),
    ];
    println!("\nall tables of the gold query among the first 5 / 10 / 20, in %\n");
    println!(
        "| evidence | {} |",
        sets.iter().map(|(n, q)| format!("{n} ({})", q.len())).collect::<Vec<_>>().join(" | ")
    );
    println!("|---|{}", "---:|".repeat(sets.len()));
    let full = RankingWeights::default();
    let names =
        RankingWeights { schema: 0.0, synonym: 0.0, neighbour: 0.0, join_paths: false, topic: 0.0, ..full.clone() };
    let ladder: Vec<(&str, RankingWeights, bool)> = vec![
        ("names of tables and columns, by rarity", names.clone(), false),
        ("+ nearly the same meaning (embeddings)", RankingWeights { synonym: full.synonym, ..names.clone() }, false),
        (
            "+ what tied tables say",
            RankingWeights { schema: 0.0, topic: 0.0, join_paths: false, ..full.clone() },
            false,
        ),
        (
            "+ groups of tables, with join paths completed",
            RankingWeights { schema: 0.0, topic: 0.0, ..full.clone() },
            false,
        ),
        ("+ names of schemas", RankingWeights { topic: 0.0, ..full.clone() }, false),
        ("+ what tables are about as a whole = all that `link` has", full.clone(), false),
        ("+ values that the question names", full.clone(), true),
        ("all but embeddings", RankingWeights { synonym: 0.0, ..full.clone() }, false),
        ("all but tied tables", RankingWeights { neighbour: 0.0, ..full.clone() }, false),
        ("all but groups", RankingWeights { join_paths: false, ..full.clone() }, false),
        (
            "all but telling values and vague words",
            RankingWeights { value_like: 1.0, low_signal: 1.0, ..full.clone() },
            false,
        ),
        ("all but more of a schema that is ahead", RankingWeights { lead_margin: f32::MAX, ..full.clone() }, false),
        ("all but words cut short", RankingWeights { abbreviation: 0.0, ..full.clone() }, false),
        (
            "all but the words of one column together",
            RankingWeights { column_coverage_exponent: 0.0, ..full.clone() },
            false,
        ),
    ];
    let shown = |name: &str, ranks: &dyn Fn(&Asked) -> usize| {
        let cells: Vec<String> =
            sets.iter().map(|(_, set)| share(&set.iter().map(|q| ranks(q)).collect::<Vec<_>>())).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    // It takes many times as long as all others together.
    if std::env::args().any(|a| a == "old") {
        let old = old::Scorer::new(schema);
        shown("the scorer before", &|q| q.rank(old.ranked(&q.question, 20).iter().copied()));
    }
    for (name, weights, with_values) in &ladder {
        shown(name, &|q| {
            let hits = if *with_values { values.hits(&q.question) } else { Vec::new() };
            q.rank(tables.rank_tables(&q.question, &hits, weights, 20).iter().map(|(t, _)| *t))
        });
    }
    for (name, with_values) in [("tables of the same names count too", false), ("the same, with values", true)] {
        shown(name, &|q| {
            let hits = if with_values { values.hits(&q.question) } else { Vec::new() };
            q.rank_of_alike(tables.rank_tables(&q.question, &hits, &full, 20).iter().map(|(t, _)| *t))
        });
    }
    speed(&tables, dev);
}

/// How long choosing and packing takes.
fn speed(tables: &SchemaLinker, dev: &[Asked]) {
    let mut times: Vec<f64> = Vec::new();
    for question in dev {
        // The shortest of three, since others may be at work on this machine.
        let once = |_| {
            let began = Instant::now();
            std::hint::black_box(tables.link(&question.question, 24_000));
            began.elapsed().as_secs_f64() * 1e3
        };
        times.push((0..3).map(once).fold(f64::MAX, f64::min));
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "\n`link` into 24,000 bytes: median {:.2} ms, 95 of 100 under {:.2} ms, longest {:.2} ms",
        at(0.5),
        at(0.95),
        at(1.0)
    );
}

/// One database at a time, planted among generated tables alone: what a user meets who has one database in a large catalogue, and
/// not 155 others that were asked about as well. The generated ones are made of the words of all databases, the one that is asked
/// about included, or of those of other databases.
fn alone(data: &Path, real: &[Table], dev: &[Asked], train: &[Asked]) {
    let values = Values::read(data);
    println!(
        "| one database at a time, among tables made of | without values | with values that the question names |\n|---|---:|---:|"
    );
    let all = |_: &str| true;
    let not_dev = |database: &str| !dev.iter().any(|q| q.database == database);
    let held_out = |database: &str| catalogue::hash(database).is_multiple_of(2);
    let not_held_out = |database: &str| !held_out(database);
    let every = |of: &[Asked], which: &dyn Fn(&Asked) -> bool, step: usize| -> Vec<Asked> {
        of.iter().filter(|q| which(q)).step_by(step).cloned().collect()
    };
    type Which<'w> = &'w dyn Fn(&str) -> bool;
    let sets: [(&str, Vec<Asked>, Which<'_>); 5] = [
        ("the same words: dev", every(dev, &|_| true, 1), &all),
        ("the same words: train, every fifth", every(train, &|_| true, 5), &all),
        ("others' words: dev", every(dev, &|_| true, 1), &not_dev),
        ("others' words: train, weights' half, every fifth", every(train, &|q| !q.held_out, 5), &held_out),
        ("others' words: train, held out, every fifth", every(train, &|q| q.held_out, 5), &not_held_out),
    ];
    for (name, set, makes) in sets {
        let makers: Vec<Table> =
            real.iter().filter(|table| makes(table.schema.as_deref().unwrap_or_default())).cloned().collect();
        let count = makers.len();
        let generated = catalogue::planted(makers, 10_000 + count, 20).split_off(count);
        let mut databases: Vec<&str> = set.iter().map(|q| q.database.as_str()).collect();
        databases.sort_unstable();
        databases.dedup();
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for database in databases {
            let own = real.iter().filter(|table| table.schema.as_deref() == Some(database));
            let tables: Vec<Table> = own.chain(&generated).take(10_000).cloned().collect();
            let schema = Arc::new(Schema::new(tables).expect("a schema"));
            let tables = SchemaLinker::new(schema, &SQLITE, &Policy::default());
            for q in set.iter().filter(|q| q.database == database) {
                let rank = |hits: &[_]| {
                    q.rank(
                        tables.rank_tables(&q.question, hits, &RankingWeights::default(), 20).iter().map(|(t, _)| *t),
                    )
                };
                without.push(rank(&[]));
                with.push(rank(&values.hits(&q.question)));
            }
        }
        println!("| {name} ({}) | {} | {} |", set.len(), share(&without), share(&with));
    }
}

/// What a change of a few tables costs.
fn changed(tables: &SchemaLinker, schema: &Schema) {
    let mut now: Vec<_> = schema.tables().to_vec();
    for table in now.iter_mut().step_by(1_000) {
        table.columns.push(Column::new("noted_lately", "TEXT"));
    }
    let now = Arc::new(Schema::new(now).expect("a schema"));
    let began = Instant::now();
    let after = tables.with_schema(now, &Policy::default());
    after.index_bytes();
    println!("index: {:.0} ms after a change of 10 tables", began.elapsed().as_secs_f64() * 1e3);
}

fn share(ranks: &[usize]) -> String {
    let within = |most: usize| 100.0 * ranks.iter().filter(|r| **r <= most).count() as f64 / ranks.len().max(1) as f64;
    format!("{:.1} / **{:.1}** / {:.1}", within(5), within(10), within(20))
}

/// Changes one weight after the other and keeps what helps, on the half of the databases that is there for it.
fn tune(tables: &SchemaLinker, train: &[Asked]) {
    let set: Vec<&Asked> = train.iter().filter(|q| !q.held_out).step_by(4).collect();
    let value = |weights: &RankingWeights| -> f64 {
        let half = set.len() / 2;
        let of = |part: &[&Asked]| -> f64 {
            part.iter()
                .map(|q| match q.rank(tables.rank_tables(&q.question, &[], weights, 20).iter().map(|(t, _)| *t)) {
                    0..=5 => 1.0,
                    6..=10 => 0.9,
                    11..=20 => 0.2,
                    _ => 0.0,
                })
                .sum()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| of(&set[..half]));
            of(&set[half..]) + other.join().unwrap()
        }) / set.len() as f64
    };
    type Change = (&'static str, fn(&mut RankingWeights) -> &mut f32, &'static [f32]);
    let changes: &[Change] = &[
        ("whole_name", |w| &mut w.full_name_share, &[0.0, 0.2, 0.4, 0.6, 0.8]),
        ("column", |w| &mut w.column, &[0.3, 0.45, 0.6, 0.75, 0.9]),
        ("long_column", |w| &mut w.column_length_exponent, &[0.0, 0.25, 0.5, 0.75, 1.0]),
        ("wide", |w| &mut w.width_penalty, &[0.0, 0.1, 0.2, 0.4, 0.6, 0.8]),
        ("missing", |w| &mut w.missing_exponent, &[1.0, 2.0, 3.0]),
        ("part_of_column", |w| &mut w.column_coverage_exponent, &[0.5, 0.75, 1.0, 1.3]),
        ("cut_short", |w| &mut w.abbreviation, &[0.0, 0.5, 0.7, 0.9]),
        ("named", |w| &mut w.value_like, &[0.3, 0.45, 0.6, 0.8, 1.0]),
        ("vague", |w| &mut w.low_signal, &[0.0, 0.1, 0.2, 0.4, 1.0]),
        ("first", |w| &mut w.seed, &[0.0, 0.25, 0.5, 1.0]),
        ("ahead", |w| &mut w.lead_margin, &[0.05, 0.15, 0.25, f32::MAX]),
        ("topic", |w| &mut w.topic, &[0.0, 1.0, 2.0, 3.0, 4.0]),
        ("near", |w| &mut w.synonym, &[0.0, 0.3, 0.45, 0.6, 0.8]),
        ("near_from", |w| &mut w.min_synonym_similarity, &[0.4, 0.45, 0.5, 0.6]),
        ("tied", |w| &mut w.neighbour, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ("step", |w| &mut w.decay, &[0.4, 0.55, 0.7, 0.85]),
        ("schema", |w| &mut w.schema, &[0.0, 0.15, 0.3, 0.5]),
        ("gain", |w| &mut w.min_gain, &[0.05, 0.1, 0.15, 0.2, 0.3]),
    ];
    let mut best = RankingWeights::default();
    let mut reached = value(&best);
    println!("begin {reached:.4}");
    for round in 0..2 {
        for (name, field, candidates) in changes {
            for candidate in *candidates {
                let mut weights = best.clone();
                *field(&mut weights) = *candidate;
                let now = value(&weights);
                if now > reached + 0.0005 {
                    println!("round {round}: {name} = {candidate}: {now:.4}");
                    (best, reached) = (weights, now);
                }
            }
        }
    }
    println!("{best:#?}");
}

/// Shows what is not found, of the half that weights are chosen on, and counts it by what is missing.
fn misses(tables: &SchemaLinker, dev: &[Asked], train: &[Asked]) {
    let mut kinds: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for q in dev.iter().chain(train.iter().step_by(5)).filter(|q| !q.held_out) {
        let ranked = tables.rank_tables(&q.question, &[], &RankingWeights::default(), 10);
        if q.rank(ranked.iter().map(|(t, _)| *t)) <= 10 {
            continue;
        }
        let own = || ranked.iter().filter(|(t, _)| t.schema.as_deref() == Some(&q.database));
        let kind = match (q.rank_of_alike(ranked.iter().map(|(t, _)| *t)), own().count()) {
            (1..=10, _) => "another schema has tables of the same names",
            (_, 0) => "nothing of the schema",
            _ if own().any(|(t, _)| q.tables.contains(&t.name.to_lowercase())) => "one of several tables",
            _ => "another table of the schema instead",
        };
        *kinds.entry(kind).or_default() += 1;
        println!("{kind}: {} — {} {:?}", q.question, q.database, q.tables);
        for (table, score) in ranked {
            println!("    {score:.2} {}", table.full_name());
        }
    }
    println!("{kinds:#?}");
}
