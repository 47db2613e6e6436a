//! One function for each behaviour. Each gets an empty store.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;

use querymend_memory::{
    Example, ExampleFilter, ExampleQuery, ExampleStore, ExampleUpdate, Provenance, ScoredExample, VerificationStatus,
};

pub type Check = for<'s> fn(&'s dyn ExampleStore) -> Pin<Box<dyn Future<Output = ()> + 's>>;

pub static CHECKS: &[(&str, Check)] = &[
    ("empty_store_returns_nothing", |store| Box::pin(empty(store))),
    ("finds_added_examples_by_similarity", |store| Box::pin(found(store))),
    ("upsert_replaces_and_keeps_counters", |store| Box::pin(upsert(store))),
    ("adds_many_in_one_call", |store| Box::pin(bulk(store))),
    ("filters_by_dialect_database_and_status", |store| Box::pin(filters(store))),
    ("ranks_own_database_first_among_equals", |store| Box::pin(own_first(store))),
    ("selects_diverse_examples", |store| Box::pin(diversity(store))),
    ("rare_term_finds_what_vectors_miss", |store| Box::pin(rare_words(store))),
    ("ranks_harmful_examples_last", |store| Box::pin(harm(store))),
    ("updates_an_example", |store| Box::pin(changes(store))),
    ("updates_several_examples_in_one_call", |store| Box::pin(changes_together(store))),
    ("removed_examples_are_not_found", |store| Box::pin(removal(store))),
    ("lists_newest_first_in_pages", |store| Box::pin(lists(store))),
    ("unusual_text_round_trips", |store| Box::pin(odd_texts(store))),
    ("concurrent_adds_lose_nothing", |store| Box::pin(at_once(store))),
];

fn asked<'s>(question: &'s str, database: &'s str) -> ExampleQuery<'s> {
    ExampleQuery { question, database, dialect: None, only_database: false, only_verified: false, limit: 5 }
}

fn example(question: &str, sql: &str) -> Example {
    Example::new(question, sql, "shop", "sqlite")
}

async fn search(store: &dyn ExampleStore, sought: ExampleQuery<'_>) -> Vec<ScoredExample> {
    store.search(&sought).await.unwrap()
}

async fn questions(store: &dyn ExampleStore, sought: ExampleQuery<'_>) -> Vec<String> {
    search(store, sought).await.into_iter().map(|found| found.example.question).collect()
}

async fn all(store: &dyn ExampleStore) -> usize {
    store.count(&ExampleFilter::default()).await.unwrap()
}

async fn empty(store: &dyn ExampleStore) {
    assert!(!store.name().is_empty());
    assert_eq!(all(store).await, 0);
    assert!(search(store, asked("How many orders?", "shop")).await.is_empty());
    assert_eq!(store.get("none").await.unwrap(), None);
    assert!(store.list(&ExampleFilter::default(), 0, 10).await.unwrap().is_empty());
    assert_eq!(store.add(&[]).await.unwrap(), 0);
    assert_eq!(store.remove(&["none"]).await.unwrap(), 0);
    assert_eq!(store.remove(&[]).await.unwrap(), 0);
    assert_eq!(store.update(&[("none", ExampleUpdate { uses: 1, ..ExampleUpdate::default() })]).await.unwrap(), 0);
}

async fn found(store: &dyn ExampleStore) {
    let kept = [
        example("How many orders were placed in March?", "SELECT count(*) FROM orders WHERE month = 3"),
        example("List the names of all singers", "SELECT name FROM singer"),
        Example {
            metric: Some("revenue".into()),
            ..example("What is the total revenue by region?", "SELECT region, sum(x) FROM sales GROUP BY region")
        },
    ];
    assert_eq!(store.add(&kept).await.unwrap(), 3);
    let found = search(store, asked("how many orders were there in march", "shop")).await;
    assert_eq!(found[0].example, kept[0]);
    assert!(found[0].similarity > 0.5 && found[0].similarity > found[1].similarity, "{found:?}");
    assert!(found.is_sorted_by(|a, b| a.score >= b.score));
    let same = search(store, asked("What is the total revenue by region?", "shop")).await;
    assert!(same[0].example == kept[2] && (same[0].similarity - 1.0).abs() < 1e-3, "{same:?}");
    assert_eq!(search(store, ExampleQuery { limit: 1, ..asked("singers", "shop") }).await.len(), 1);
    assert!(search(store, ExampleQuery { limit: 0, ..asked("singers", "shop") }).await.is_empty());
    // A question without any word is asked, and answered.
    assert!(search(store, asked("", "shop")).await.len() <= 5);
    assert_eq!(store.get(&kept[1].id).await.unwrap().as_ref(), Some(&kept[1]));
}

async fn upsert(store: &dyn ExampleStore) {
    let first = example("How many orders?", "SELECT 1");
    assert_eq!(store.add(std::slice::from_ref(&first)).await.unwrap(), 1);
    assert_eq!(store.add(std::slice::from_ref(&first)).await.unwrap(), 0);
    store
        .update(&[(&first.id, ExampleUpdate { uses: 4, helped: 3, hurt: 1, ..ExampleUpdate::default() })])
        .await
        .unwrap();
    let second = Example {
        provenance: Provenance::Corrected,
        standing: VerificationStatus::Unverified,
        ..example("how many ORDERS", "SELECT count(*) FROM orders")
    };
    assert_eq!(second.id, first.id);
    assert_eq!(store.add(std::slice::from_ref(&second)).await.unwrap(), 0);
    assert_eq!(all(store).await, 1);
    let kept = store.get(&first.id).await.unwrap().unwrap();
    assert_eq!(kept.sql, "SELECT count(*) FROM orders");
    assert_eq!((kept.provenance, kept.standing), (Provenance::Corrected, VerificationStatus::Unverified));
    assert_eq!((kept.uses, kept.helped, kept.hurt), (4, 3, 1));
    assert_eq!(search(store, asked("How many orders?", "shop")).await[0].example.sql, kept.sql);
    // The same question to another database is another example, and twice in one call is once.
    let other = Example::new("How many orders?", "SELECT 2", "other", "sqlite");
    assert_eq!(store.add(&[other.clone(), other]).await.unwrap(), 1);
    assert_eq!(all(store).await, 2);
}

async fn bulk(store: &dyn ExampleStore) {
    let many: Vec<Example> = (0..700)
        .map(|at| example(&format!("How many parcels went to town number {at}?"), &format!("SELECT {at}")))
        .collect();
    assert_eq!(store.add(&many).await.unwrap(), 700);
    assert_eq!(store.add(&many[..10]).await.unwrap(), 0);
    assert_eq!(all(store).await, 700);
    for one in many.iter().step_by(97) {
        assert_eq!(&search(store, asked(&one.question, "shop")).await[0].example, one);
    }
}

async fn filters(store: &dyn ExampleStore) {
    let mut kept = Vec::new();
    for (database, dialect) in [("shop", "sqlite"), ("shop", "postgres"), ("school", "sqlite")] {
        for standing in VerificationStatus::ALL {
            let question = format!("How many rows are {} in {dialect}?", standing.name());
            kept.push(Example { standing, ..Example::new(&question, "SELECT 1", database, dialect) });
        }
    }
    assert_eq!(store.add(&kept).await.unwrap(), 12);
    let plain = ExampleQuery { limit: 20, ..asked("How many rows are there?", "shop") };
    for (sought, expected) in [
        (plain, 6),
        (ExampleQuery { only_verified: true, ..plain }, 3),
        (ExampleQuery { dialect: Some("sqlite"), ..plain }, 4),
        (ExampleQuery { dialect: Some("oracle"), ..plain }, 0),
        (ExampleQuery { only_database: true, ..plain }, 4),
        (ExampleQuery { only_database: true, dialect: Some("postgres"), only_verified: true, ..plain }, 1),
        (ExampleQuery { only_database: true, database: "nowhere", ..plain }, 0),
        (ExampleQuery { database: "nowhere", ..plain }, 6),
    ] {
        let found = search(store, sought).await;
        assert_eq!(found.len(), expected, "{sought:?}");
        for ScoredExample { example, .. } in found {
            assert!(matches!(example.standing, VerificationStatus::Verified | VerificationStatus::Unverified));
            assert!(sought.dialect.is_none_or(|dialect| dialect == example.dialect));
        }
    }
    for (filter, expected) in [
        (ExampleFilter::default(), 12),
        (ExampleFilter { database: Some("shop".into()), ..ExampleFilter::default() }, 8),
        (ExampleFilter { dialect: Some("postgres".into()), ..ExampleFilter::default() }, 4),
        (ExampleFilter { standing: Some(VerificationStatus::Rejected), ..ExampleFilter::default() }, 3),
        (ExampleFilter { provenance: Some(Provenance::Auto), ..ExampleFilter::default() }, 0),
        (
            ExampleFilter {
                database: Some("shop".into()),
                standing: Some(VerificationStatus::Stale),
                ..ExampleFilter::default()
            },
            2,
        ),
    ] {
        assert_eq!(store.count(&filter).await.unwrap(), expected, "{filter:?}");
        let listed = store.list(&filter, 0, 100).await.unwrap();
        assert!(listed.len() == expected && listed.iter().all(|example| filter.matches(example)));
    }
}

async fn own_first(store: &dyn ExampleStore) {
    let question = "How many customers came back?";
    let kept: Vec<Example> =
        ["a", "b", "c", "d"].iter().map(|database| Example::new(question, "SELECT 1", database, "sqlite")).collect();
    store.add(&kept).await.unwrap();
    for database in ["c", "a", "d"] {
        let found = search(store, asked(question, database)).await;
        assert_eq!(found[0].example.database, database);
        assert_eq!(found.len(), 4);
    }
}

async fn diversity(store: &dyn ExampleStore) {
    let copies = (2000..2030).map(|year| {
        example(
            &format!("How many orders were placed in {year}?"),
            &format!("SELECT count(*) FROM orders WHERE year = {year}"),
        )
    });
    let others = [
        example("How many orders were placed in each year?", "SELECT year, count(*) FROM orders GROUP BY year"),
        example(
            "In which year were the most orders placed?",
            "SELECT year FROM orders GROUP BY year ORDER BY count(*) DESC LIMIT 1",
        ),
        example(
            "How many orders were placed by customers in 2020?",
            "SELECT count(DISTINCT o.id) FROM orders o JOIN customer c ON o.c = c.id WHERE year = 2020",
        ),
    ];
    store.add(&copies.chain(others).collect::<Vec<_>>()).await.unwrap();
    let found = questions(store, asked("How many orders were placed in 2012?", "shop")).await;
    assert_eq!(found[0], "How many orders were placed in 2012?");
    let copies = found.iter().filter(|question| question.starts_with("How many orders were placed in 2")).count();
    assert!(found.len() == 5 && copies <= 3, "{found:?}");
}

async fn rare_words(store: &dyn ExampleStore) {
    // More than are looked at by vectors are nearer to the question than the two that have its rare word.
    let crowd = (0..300).map(|at| example(&format!("How many parcels went to town number {at}?"), "SELECT 1"));
    let own = example("Warehouse staff turnover QX7731, by contract and month", "SELECT a, b FROM staff GROUP BY a");
    let other = Example::new("Spoiled goods, reason qx7731", "SELECT c FROM d ORDER BY e", "other", "sqlite");
    let hidden = Example {
        standing: VerificationStatus::Rejected,
        ..example("Qx7731 and nothing else", "SELECT f FROM g LIMIT 1")
    };
    let kept: Vec<Example> = crowd.chain([own.clone(), other.clone(), hidden.clone()]).collect();
    store.add(&kept).await.unwrap();
    let most = 60;
    let sought = ExampleQuery { limit: most, ..asked("How many parcels went to Qx7731?", "shop") };
    for (sought, expected) in [
        (sought, [true, true, false]),
        (ExampleQuery { only_database: true, ..sought }, [true, false, false]),
        (ExampleQuery { dialect: Some("oracle"), ..sought }, [false; 3]),
        (ExampleQuery { question: "How many parcels went to town number 7?", ..sought }, [false; 3]),
    ] {
        let found = search(store, sought).await;
        let there = [&own, &other, &hidden].map(|one| found.iter().any(|found| found.example.id == one.id));
        assert_eq!(there, expected, "{sought:?}");
    }
}

async fn harm(store: &dyn ExampleStore) {
    let good = example("What was the revenue in spring?", "SELECT sum(a) FROM x");
    let bad = example("What was the revenue in the spring?", "SELECT sum(b) FROM x");
    store.add(&[bad.clone(), good.clone()]).await.unwrap();
    let sought = asked("What was the revenue in the spring?", "shop");
    assert_eq!(search(store, sought).await[0].example.id, bad.id);
    store.update(&[(&bad.id, ExampleUpdate { hurt: 6, ..ExampleUpdate::default() })]).await.unwrap();
    let found = search(store, sought).await;
    assert_eq!((found[0].example.id.as_str(), found[1].example.hurt), (good.id.as_str(), 6));
    store.update(&[(&bad.id, ExampleUpdate { helped: 300, ..ExampleUpdate::default() })]).await.unwrap();
    assert_eq!(search(store, sought).await[0].example.id, bad.id);
}

async fn changes(store: &dyn ExampleStore) {
    let one = example("How many orders?", "SELECT 1");
    store.add(std::slice::from_ref(&one)).await.unwrap();
    let change = ExampleUpdate {
        uses: 2,
        helped: 1,
        hurt: 1,
        standing: Some(VerificationStatus::Unverified),
        provenance: Some(Provenance::Auto),
    };
    assert_eq!(store.update(&[(&one.id, change)]).await.unwrap(), 1);
    assert_eq!(store.update(&[(&one.id, ExampleUpdate { uses: 1, ..ExampleUpdate::default() })]).await.unwrap(), 1);
    let kept = store.get(&one.id).await.unwrap().unwrap();
    assert_eq!((kept.uses, kept.helped, kept.hurt), (3, 1, 1));
    assert_eq!((kept.standing, kept.provenance), (VerificationStatus::Unverified, Provenance::Auto));
    assert_eq!((kept.question, kept.sql, kept.added), (one.question, one.sql, one.added));
    let sought = asked("How many orders?", "shop");
    for standing in [VerificationStatus::Stale, VerificationStatus::Rejected] {
        store
            .update(&[(&one.id, ExampleUpdate { standing: Some(standing), ..ExampleUpdate::default() })])
            .await
            .unwrap();
        assert!(search(store, sought).await.is_empty());
        assert_eq!(store.get(&one.id).await.unwrap().unwrap().standing, standing);
    }
    store
        .update(&[(
            &one.id,
            ExampleUpdate { standing: Some(VerificationStatus::Verified), ..ExampleUpdate::default() },
        )])
        .await
        .unwrap();
    assert_eq!(search(store, sought).await.len(), 1);
}

async fn changes_together(store: &dyn ExampleStore) {
    let kept: Vec<Example> = (0..3).map(|at| example(&format!("How many orders of kind {at}?"), "SELECT 1")).collect();
    store.add(&kept).await.unwrap();
    let one = ExampleUpdate { uses: 1, ..ExampleUpdate::default() };
    let rejected = ExampleUpdate { standing: Some(VerificationStatus::Rejected), ..ExampleUpdate::default() };
    // What is said of one example twice is counted twice, and it is still one example.
    let changes = [(kept[0].id.as_str(), one), ("none", one), (&kept[1].id, rejected), (&kept[0].id, one)];
    assert_eq!(store.update(&changes).await.unwrap(), 2);
    assert_eq!(store.update(&[]).await.unwrap(), 0);
    let now: Vec<Example> = store.list(&ExampleFilter::default(), 0, 9).await.unwrap();
    let of = |id: &str| now.iter().find(|example| example.id == id).unwrap();
    assert_eq!((of(&kept[0].id).uses, of(&kept[0].id).standing), (2, VerificationStatus::Verified));
    assert_eq!((of(&kept[1].id).uses, of(&kept[1].id).standing), (0, VerificationStatus::Rejected));
    assert_eq!(of(&kept[2].id), &kept[2]);
}

async fn removal(store: &dyn ExampleStore) {
    let kept: Vec<Example> = (0..20).map(|at| example(&format!("How many orders of kind {at}?"), "SELECT 1")).collect();
    store.add(&kept).await.unwrap();
    assert_eq!(store.remove(&[&kept[3].id, "none", &kept[4].id, &kept[3].id]).await.unwrap(), 2);
    assert_eq!(all(store).await, 18);
    assert_eq!(store.get(&kept[3].id).await.unwrap(), None);
    let sought = ExampleQuery { limit: 30, ..asked(&kept[3].question, "shop") };
    assert!(
        search(store, sought)
            .await
            .iter()
            .all(|found| found.example.id != kept[3].id && found.example.id != kept[4].id)
    );
    assert_eq!(store.add(&kept[3..4]).await.unwrap(), 1);
    assert_eq!(search(store, sought).await[0].example.id, kept[3].id);
    let ids: Vec<&str> = kept.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(store.remove(&ids).await.unwrap(), 19);
    assert_eq!((all(store).await, search(store, sought).await.len()), (0, 0));
}

async fn lists(store: &dyn ExampleStore) {
    let kept: Vec<Example> =
        (0..25).map(|at| Example { added: 1000 + at, ..example(&format!("Question {at}?"), "SELECT 1") }).collect();
    store.add(&kept).await.unwrap();
    let mut seen = Vec::new();
    for skip in (0..30).step_by(10) {
        seen.extend(store.list(&ExampleFilter::default(), skip, 10).await.unwrap());
    }
    assert!(seen.iter().eq(kept.iter().rev()));
    assert!(store.list(&ExampleFilter::default(), 25, 10).await.unwrap().is_empty());
    assert!(store.list(&ExampleFilter::default(), 0, 0).await.unwrap().is_empty());
}

async fn odd_texts(store: &dyn ExampleStore) {
    let texts = [
        "it's \"quoted\" `so` [and] so",
        "ünïcödé 数据库 🦀",
        "a\nb\tc\\d % _ $1 ?1 :x {y}",
        "'; DROP TABLE example; --",
    ];
    let kept: Vec<Example> = texts
        .iter()
        .map(|text| Example {
            metric: Some((*text).to_string()),
            ..Example::new(text, &format!("SELECT '{text}'"), text, text)
        })
        .collect();
    assert_eq!(store.add(&kept).await.unwrap(), texts.len());
    for one in &kept {
        assert_eq!(store.get(&one.id).await.unwrap().as_ref(), Some(one));
        let sought =
            ExampleQuery { only_database: true, dialect: Some(&one.dialect), ..asked(&one.question, &one.database) };
        assert_eq!(&search(store, sought).await[0].example, one);
        let filter = ExampleFilter {
            database: Some(one.database.clone()),
            dialect: Some(one.dialect.clone()),
            ..ExampleFilter::default()
        };
        assert_eq!(store.list(&filter, 0, 5).await.unwrap(), std::slice::from_ref(one));
    }
    let long = example(&"word ".repeat(5_000), &"SELECT 1 ".repeat(5_000));
    store.add(std::slice::from_ref(&long)).await.unwrap();
    assert_eq!(store.get(&long.id).await.unwrap(), Some(long));
}

async fn at_once(store: &dyn ExampleStore) {
    let examples: Vec<Example> = (0..24).map(|at| example(&format!("How many at once, {at}?"), "SELECT 1")).collect();
    let adds = examples.iter().map(|one| async move {
        assert_eq!(store.add(std::slice::from_ref(one)).await.unwrap(), 1);
        let found = store.search(&asked(&one.question, "shop")).await.unwrap();
        assert!(found.iter().any(|found| found.example.id == one.id), "what is acknowledged is found");
        store.update(&[(&one.id, ExampleUpdate { uses: 1, ..ExampleUpdate::default() })]).await.unwrap()
    });
    let mut waiting: Vec<Pin<Box<dyn Future<Output = usize> + '_>>> =
        adds.map(|add| Box::pin(add) as Pin<Box<dyn Future<Output = usize> + '_>>).collect();
    // All of them go on together: each is asked in turn until all are done.
    std::future::poll_fn(|context| {
        waiting.retain_mut(|add| add.as_mut().poll(context).is_pending());
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!(all(store).await, 24);
    let ids: HashSet<String> = store
        .list(&ExampleFilter::default(), 0, 100)
        .await
        .unwrap()
        .into_iter()
        .filter(|one| one.uses == 1)
        .map(|one| one.id)
        .collect();
    assert_eq!(ids.len(), 24);
}
