//! One function for each behaviour. Each gets an empty store.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;

use querymend_memory::{Change, Example, ExampleStore, Filter, Found, Provenance, Sought, Standing};

pub type Check = for<'s> fn(&'s dyn ExampleStore) -> Pin<Box<dyn Future<Output = ()> + 's>>;

pub static CHECKS: &[(&str, Check)] = &[
    ("f06_an_empty_store_answers", |store| Box::pin(empty(store))),
    ("f06_what_was_added_is_found_by_likeness", |store| Box::pin(found(store))),
    ("f06_adding_again_replaces_and_keeps_the_counts", |store| Box::pin(upsert(store))),
    ("f06_many_are_added_at_once", |store| Box::pin(bulk(store))),
    ("f06_dialect_database_and_standing_filter", |store| Box::pin(filters(store))),
    ("f06_the_own_database_comes_first_among_equals", |store| Box::pin(own_first(store))),
    ("f06_near_copies_do_not_fill_the_answer", |store| Box::pin(diversity(store))),
    ("f06_a_rare_word_finds_what_vectors_miss", |store| Box::pin(rare_words(store))),
    ("f06_harmful_ones_sink", |store| Box::pin(harm(store))),
    ("f06_what_is_known_of_an_example_changes", |store| Box::pin(changes(store))),
    ("f06_several_change_in_one_go", |store| Box::pin(changes_together(store))),
    ("f06_what_was_removed_is_gone", |store| Box::pin(removal(store))),
    ("f06_lists_are_newest_first_and_in_pages", |store| Box::pin(lists(store))),
    ("f06_odd_texts_come_back_as_they_were", |store| Box::pin(odd_texts(store))),
    ("f06_many_at_the_same_time_are_all_kept", |store| Box::pin(at_once(store))),
];

fn asked<'s>(question: &'s str, database: &'s str) -> Sought<'s> {
    Sought { question, database, dialect: None, only_database: false, only_verified: false, most: 5 }
}

fn example(question: &str, sql: &str) -> Example {
    Example::new(question, sql, "shop", "sqlite")
}

async fn search(store: &dyn ExampleStore, sought: Sought<'_>) -> Vec<Found> {
    store.search(&sought).await.unwrap()
}

async fn questions(store: &dyn ExampleStore, sought: Sought<'_>) -> Vec<String> {
    search(store, sought).await.into_iter().map(|found| found.example.question).collect()
}

async fn all(store: &dyn ExampleStore) -> usize {
    store.count(&Filter::default()).await.unwrap()
}

async fn empty(store: &dyn ExampleStore) {
    assert!(!store.name().is_empty());
    assert_eq!(all(store).await, 0);
    assert!(search(store, asked("How many orders?", "shop")).await.is_empty());
    assert_eq!(store.get("none").await.unwrap(), None);
    assert!(store.list(&Filter::default(), 0, 10).await.unwrap().is_empty());
    assert_eq!(store.add(&[]).await.unwrap(), 0);
    assert_eq!(store.remove(&["none"]).await.unwrap(), 0);
    assert_eq!(store.remove(&[]).await.unwrap(), 0);
    assert_eq!(store.change(&[("none", Change { uses: 1, ..Change::default() })]).await.unwrap(), 0);
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
    assert_eq!(search(store, Sought { most: 1, ..asked("singers", "shop") }).await.len(), 1);
    assert!(search(store, Sought { most: 0, ..asked("singers", "shop") }).await.is_empty());
    // A question without any word is asked, and answered.
    assert!(search(store, asked("", "shop")).await.len() <= 5);
    assert_eq!(store.get(&kept[1].id).await.unwrap().as_ref(), Some(&kept[1]));
}

async fn upsert(store: &dyn ExampleStore) {
    let first = example("How many orders?", "SELECT 1");
    assert_eq!(store.add(std::slice::from_ref(&first)).await.unwrap(), 1);
    assert_eq!(store.add(std::slice::from_ref(&first)).await.unwrap(), 0);
    store.change(&[(&first.id, Change { uses: 4, helped: 3, hurt: 1, ..Change::default() })]).await.unwrap();
    let second = Example {
        provenance: Provenance::Corrected,
        standing: Standing::Unverified,
        ..example("how many ORDERS", "SELECT count(*) FROM orders")
    };
    assert_eq!(second.id, first.id);
    assert_eq!(store.add(std::slice::from_ref(&second)).await.unwrap(), 0);
    assert_eq!(all(store).await, 1);
    let kept = store.get(&first.id).await.unwrap().unwrap();
    assert_eq!(kept.sql, "SELECT count(*) FROM orders");
    assert_eq!((kept.provenance, kept.standing), (Provenance::Corrected, Standing::Unverified));
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
        for standing in Standing::ALL {
            let question = format!("How many rows are {} in {dialect}?", standing.name());
            kept.push(Example { standing, ..Example::new(&question, "SELECT 1", database, dialect) });
        }
    }
    assert_eq!(store.add(&kept).await.unwrap(), 12);
    let plain = Sought { most: 20, ..asked("How many rows are there?", "shop") };
    for (sought, expected) in [
        (plain, 6),
        (Sought { only_verified: true, ..plain }, 3),
        (Sought { dialect: Some("sqlite"), ..plain }, 4),
        (Sought { dialect: Some("oracle"), ..plain }, 0),
        (Sought { only_database: true, ..plain }, 4),
        (Sought { only_database: true, dialect: Some("postgres"), only_verified: true, ..plain }, 1),
        (Sought { only_database: true, database: "nowhere", ..plain }, 0),
        (Sought { database: "nowhere", ..plain }, 6),
    ] {
        let found = search(store, sought).await;
        assert_eq!(found.len(), expected, "{sought:?}");
        for Found { example, .. } in found {
            assert!(matches!(example.standing, Standing::Verified | Standing::Unverified));
            assert!(sought.dialect.is_none_or(|dialect| dialect == example.dialect));
        }
    }
    for (filter, expected) in [
        (Filter::default(), 12),
        (Filter { database: Some("shop".into()), ..Filter::default() }, 8),
        (Filter { dialect: Some("postgres".into()), ..Filter::default() }, 4),
        (Filter { standing: Some(Standing::Rejected), ..Filter::default() }, 3),
        (Filter { provenance: Some(Provenance::Auto), ..Filter::default() }, 0),
        (Filter { database: Some("shop".into()), standing: Some(Standing::Stale), ..Filter::default() }, 2),
    ] {
        assert_eq!(store.count(&filter).await.unwrap(), expected, "{filter:?}");
        let listed = store.list(&filter, 0, 100).await.unwrap();
        assert!(listed.len() == expected && listed.iter().all(|example| filter.fits(example)));
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
    let hidden =
        Example { standing: Standing::Rejected, ..example("Qx7731 and nothing else", "SELECT f FROM g LIMIT 1") };
    let kept: Vec<Example> = crowd.chain([own.clone(), other.clone(), hidden.clone()]).collect();
    store.add(&kept).await.unwrap();
    let most = 60;
    let sought = Sought { most, ..asked("How many parcels went to Qx7731?", "shop") };
    for (sought, expected) in [
        (sought, [true, true, false]),
        (Sought { only_database: true, ..sought }, [true, false, false]),
        (Sought { dialect: Some("oracle"), ..sought }, [false; 3]),
        (Sought { question: "How many parcels went to town number 7?", ..sought }, [false; 3]),
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
    store.change(&[(&bad.id, Change { hurt: 6, ..Change::default() })]).await.unwrap();
    let found = search(store, sought).await;
    assert_eq!((found[0].example.id.as_str(), found[1].example.hurt), (good.id.as_str(), 6));
    store.change(&[(&bad.id, Change { helped: 300, ..Change::default() })]).await.unwrap();
    assert_eq!(search(store, sought).await[0].example.id, bad.id);
}

async fn changes(store: &dyn ExampleStore) {
    let one = example("How many orders?", "SELECT 1");
    store.add(std::slice::from_ref(&one)).await.unwrap();
    let change = Change {
        uses: 2,
        helped: 1,
        hurt: 1,
        standing: Some(Standing::Unverified),
        provenance: Some(Provenance::Auto),
    };
    assert_eq!(store.change(&[(&one.id, change)]).await.unwrap(), 1);
    assert_eq!(store.change(&[(&one.id, Change { uses: 1, ..Change::default() })]).await.unwrap(), 1);
    let kept = store.get(&one.id).await.unwrap().unwrap();
    assert_eq!((kept.uses, kept.helped, kept.hurt), (3, 1, 1));
    assert_eq!((kept.standing, kept.provenance), (Standing::Unverified, Provenance::Auto));
    assert_eq!((kept.question, kept.sql, kept.added), (one.question, one.sql, one.added));
    let sought = asked("How many orders?", "shop");
    for standing in [Standing::Stale, Standing::Rejected] {
        store.change(&[(&one.id, Change { standing: Some(standing), ..Change::default() })]).await.unwrap();
        assert!(search(store, sought).await.is_empty());
        assert_eq!(store.get(&one.id).await.unwrap().unwrap().standing, standing);
    }
    store.change(&[(&one.id, Change { standing: Some(Standing::Verified), ..Change::default() })]).await.unwrap();
    assert_eq!(search(store, sought).await.len(), 1);
}

async fn changes_together(store: &dyn ExampleStore) {
    let kept: Vec<Example> = (0..3).map(|at| example(&format!("How many orders of kind {at}?"), "SELECT 1")).collect();
    store.add(&kept).await.unwrap();
    let one = Change { uses: 1, ..Change::default() };
    let rejected = Change { standing: Some(Standing::Rejected), ..Change::default() };
    // What is said of one example twice is counted twice, and it is still one example.
    let changes = [(kept[0].id.as_str(), one), ("none", one), (&kept[1].id, rejected), (&kept[0].id, one)];
    assert_eq!(store.change(&changes).await.unwrap(), 2);
    assert_eq!(store.change(&[]).await.unwrap(), 0);
    let now: Vec<Example> = store.list(&Filter::default(), 0, 9).await.unwrap();
    let of = |id: &str| now.iter().find(|example| example.id == id).unwrap();
    assert_eq!((of(&kept[0].id).uses, of(&kept[0].id).standing), (2, Standing::Verified));
    assert_eq!((of(&kept[1].id).uses, of(&kept[1].id).standing), (0, Standing::Rejected));
    assert_eq!(of(&kept[2].id), &kept[2]);
}

async fn removal(store: &dyn ExampleStore) {
    let kept: Vec<Example> = (0..20).map(|at| example(&format!("How many orders of kind {at}?"), "SELECT 1")).collect();
    store.add(&kept).await.unwrap();
    assert_eq!(store.remove(&[&kept[3].id, "none", &kept[4].id, &kept[3].id]).await.unwrap(), 2);
    assert_eq!(all(store).await, 18);
    assert_eq!(store.get(&kept[3].id).await.unwrap(), None);
    let sought = Sought { most: 30, ..asked(&kept[3].question, "shop") };
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
        seen.extend(store.list(&Filter::default(), skip, 10).await.unwrap());
    }
    assert!(seen.iter().eq(kept.iter().rev()));
    assert!(store.list(&Filter::default(), 25, 10).await.unwrap().is_empty());
    assert!(store.list(&Filter::default(), 0, 0).await.unwrap().is_empty());
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
        let sought = Sought { only_database: true, dialect: Some(&one.dialect), ..asked(&one.question, &one.database) };
        assert_eq!(&search(store, sought).await[0].example, one);
        let filter =
            Filter { database: Some(one.database.clone()), dialect: Some(one.dialect.clone()), ..Filter::default() };
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
        store.change(&[(&one.id, Change { uses: 1, ..Change::default() })]).await.unwrap()
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
        .list(&Filter::default(), 0, 100)
        .await
        .unwrap()
        .into_iter()
        .filter(|one| one.uses == 1)
        .map(|one| one.id)
        .collect();
    assert_eq!(ids.len(), 24);
}
