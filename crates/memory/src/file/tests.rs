use std::fs;
use std::time::{Duration, Instant};

use querymend_model::Static;
use querymend_testing::scaled;

use super::*;
use crate::example::Standing;
use crate::vectors::{Centres, indexed_from};

/// Vectors by the letters of a text: quick to make, of any length.
struct Letters(&'static str, usize);

/// The same as a server, which says how long its vectors are only when it is asked for one.
struct Server(Letters);

impl Embedder for Server {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn dimensions(&self) -> Option<usize> {
        None
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> querymend_model::Answer<'a, Vec<Vec<f32>>> {
        self.0.embed(texts)
    }
}

impl Embedder for Letters {
    fn name(&self) -> &str {
        self.0
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.1)
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> querymend_model::Answer<'a, Vec<Vec<f32>>> {
        let vector = |text: &&str| {
            let mut vector = vec![0.0_f32; self.1];
            let mut sum = 7_u32;
            for byte in text.bytes() {
                sum = (sum ^ u32::from(byte)).wrapping_mul(16_777_619);
                vector[(sum >> 8) as usize % self.1] += 1.0 + (sum >> 28) as f32 / 8.0;
            }
            let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-6);
            vector.iter().map(|number| number / length).collect()
        };
        Box::pin(async move { Ok(texts.iter().map(vector).collect()) })
    }
}

fn fixed() -> Arc<dyn Embedder> {
    Arc::new(Static::builtin().unwrap())
}

fn example(question: &str) -> Example {
    Example::new(question, "SELECT 1", "shop", "sqlite")
}

fn asked(question: &str) -> Sought<'_> {
    Sought { question, database: "shop", dialect: None, only_database: false, only_verified: false, most: 5 }
}

async fn first(store: &FileStore, question: &str) -> Option<String> {
    store.search(&asked(question)).await.unwrap().first().map(|found| found.example.question.clone())
}

async fn refused(path: &Path) -> Error {
    let opened = match FileStore::open(path, fixed()).await {
        Ok(store) => store.search(&asked("x")).await.err(),
        Err(error) => Some(error),
    };
    let error = opened.unwrap_or_else(|| panic!("{} was opened", path.display()));
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()) && !error.is_transient(), "{error:?}");
    error
}

#[tokio::test]
async fn f06_a_file_that_is_opened_again_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/examples.db");
    let store = FileStore::open(&path, fixed()).await.unwrap();
    assert_eq!(store.add(&[example("How many orders?"), example("Who sings?")]).await.unwrap(), 2);
    #[cfg(unix)]
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    drop(store);
    let store = FileStore::open(&path, fixed()).await.unwrap();
    assert_eq!(store.count(&Filter::default()).await.unwrap(), 2);
    assert_eq!(first(&store, "who sings").await.unwrap(), "Who sings?");
}

#[tokio::test]
async fn f06_programs_that_share_a_file_see_what_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let one = FileStore::open(&path, fixed()).await.unwrap();
    let two = FileStore::open(&path, fixed()).await.unwrap();
    assert_eq!(first(&two, "How many orders?").await, None);
    one.add(&[example("How many orders?")]).await.unwrap();
    assert_eq!(first(&two, "How many orders?").await.unwrap(), "How many orders?");
    let id = crate::id("How many orders?", "shop");
    let stale = Change { standing: Some(Standing::Stale), ..Change::default() };
    assert_eq!(two.change(&[(&id, stale)]).await.unwrap(), 1);
    assert_eq!(first(&one, "How many orders?").await, None);
    let verified = Change { standing: Some(Standing::Verified), ..Change::default() };
    assert_eq!(one.change(&[(&id, verified)]).await.unwrap(), 1);
    assert_eq!(first(&two, "How many orders?").await.unwrap(), "How many orders?");
    assert_eq!(two.remove(&[&id]).await.unwrap(), 1);
    assert_eq!((first(&one, "How many orders?").await, one.size().examples), (None, 0));
    // More removals than are remembered.
    let many: Vec<Example> = (0..10_050).map(|at| example(&format!("Number {at}"))).collect();
    assert_eq!(one.add(&many).await.unwrap(), many.len());
    first(&two, "Number 5").await.unwrap();
    assert_eq!(two.size().examples, many.len());
    let ids: Vec<&str> = many.iter().skip(2).map(|one| one.id.as_str()).collect();
    assert_eq!(one.remove(&ids).await.unwrap(), many.len() - 2);
    assert_eq!(first(&two, "Number 0").await.unwrap(), "Number 0");
    assert_eq!(two.size().examples, 2);
}

#[tokio::test]
async fn f06_another_embedder_embeds_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let old = FileStore::open(&path, fixed()).await.unwrap();
    let kept: Vec<Example> = (0..700).map(|at| example(&format!("How many orders of {at}?"))).collect();
    old.add(&kept).await.unwrap();
    let new = FileStore::open(&path, Arc::new(Letters("letters", 24))).await.unwrap();
    let found = new.search(&asked("How many orders of 345?")).await.unwrap();
    assert!(found[0].example.question == "How many orders of 345?" && (found[0].similarity - 1.0).abs() < 1e-4);
    assert_eq!(new.count(&Filter::default()).await.unwrap(), 700);
    // The one with the other embedder says so, and mixes nothing.
    for error in [old.search(&asked("x")).await.unwrap_err(), old.add(&[example("x")]).await.unwrap_err()] {
        assert!(error.to_string().contains("from the embedder `static` to `letters`"), "{error}");
    }
    let longer = FileStore::open(&path, Arc::new(Letters("letters", 100))).await.unwrap();
    assert_eq!(first(&longer, "How many orders of 699?").await.unwrap(), "How many orders of 699?");
}

#[tokio::test]
async fn f06_an_embedder_may_not_know_how_long_its_vectors_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let server = || Arc::new(Server(Letters("server", 24)));
    let store = FileStore::open(&path, server()).await.unwrap();
    assert_eq!(first(&store, "Who sings?").await, None);
    store.add(&[example("Who sings?")]).await.unwrap();
    assert_eq!(first(&store, "Who sings?").await.unwrap(), "Who sings?");
    let again = FileStore::open(&path, server()).await.unwrap();
    assert_eq!(first(&again, "Who sings?").await.unwrap(), "Who sings?");
    // The same name and other vectors: a server whose model was changed.
    let other = FileStore::open(&path, Arc::new(Server(Letters("server", 99)))).await.unwrap();
    let error = other.add(&[example("Who dances?")]).await.unwrap_err();
    assert!(error.to_string().contains("vectors of 24 numbers; the embedder makes 99"), "{error}");
}

#[tokio::test]
async fn f06_what_is_no_file_of_ours_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("text.db"),
        "These are my notes, and they are longer than the head of a database would be. ".repeat(9),
    )
    .unwrap();
    let other = Connection::open(at("other.db")).unwrap();
    other.execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1);").unwrap();
    drop(other);
    let newer = form::open(&at("newer.db")).unwrap();
    newer.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA user_version = 99").unwrap();
    drop(newer);
    for (name, said) in [("text.db", "something else"), ("other.db", "something else"), ("newer.db", "newer version")] {
        let before = fs::read(at(name)).unwrap();
        let error = refused(&at(name)).await;
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(fs::read(at(name)).unwrap(), before, "{name}");
    }
    assert!(refused(folder.path()).await.to_string().contains("is a folder"));
    assert!(refused(&at("text.db/below.db")).await.to_string().contains("cannot be opened"));
}

#[tokio::test]
async fn f06_damage_is_told_and_not_made_worse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let shared = Shared::open(path.clone(), "static".into()).unwrap();
    let examples: Vec<Example> = (0..500).map(|at| example(&format!("Number {at}"))).collect();
    let vectors = vec![code(&[0.5; 256]); 500];
    shared
        .writing(|step| {
            rows::say(step, "embedder", &"static")?;
            rows::say(step, "dimensions", &256)?;
            Ok(rows::put(step, &examples, &vectors)?)
        })
        .unwrap();
    drop(shared);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 8..bytes.len() * 7 / 8;
    bytes[middle].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let error = refused(&path).await;
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(fs::read(&path).unwrap() == bytes, "nothing was changed in it");
}

#[tokio::test]
async fn f06_a_disk_without_room_loses_nothing_that_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path().join("examples.db"), fixed()).await.unwrap();
    store.add(&[example("How many orders?")]).await.unwrap();
    store.shared.writer().pragma_update(None, "max_page_count", 40).unwrap();
    let many: Vec<Example> = (0..2000).map(|at| example(&format!("Number {at}"))).collect();
    let error = store.add(&many).await.unwrap_err();
    assert!(error.to_string().contains("no room") && error.is_transient(), "{error}");
    assert_eq!(store.count(&Filter::default()).await.unwrap(), 1);
    store.shared.writer().pragma_update(None, "max_page_count", 1_000_000).unwrap();
    assert_eq!(store.add(&many).await.unwrap(), 2000);
    assert_eq!(first(&store, "How many orders?").await.unwrap(), "How many orders?");
}

#[tokio::test(flavor = "multi_thread")]
async fn f06_a_large_file_keeps_its_index_and_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let embedder: Arc<dyn Embedder> = Arc::new(Letters("letters", 32));
    let count = indexed_from() + 500;
    let many: Vec<Example> =
        (0..count).map(|at| example(&format!("Question {at} about {}", at * 7919 % 10_007))).collect();
    let built = |store: &FileStore| {
        let size = store.size();
        size.examples >= count && size.loose < 2_048 && !size.building
    };
    {
        let store = FileStore::open(&path, Arc::clone(&embedder)).await.unwrap();
        store.add(&many).await.unwrap();
        // Found at once, before there is an index, while it is built, and after.
        let start = Instant::now();
        let mut at = 0;
        while !built(&store) {
            assert_eq!(first(&store, &many[at].question).await.as_ref(), Some(&many[at].question));
            at = (at + 4_999) % count;
            assert!(start.elapsed() < scaled(Duration::from_secs(600)), "no index is built: {:?}", store.size());
            // Leaves the processor to the thread that builds.
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        assert_eq!(first(&store, &many[9].question).await.as_ref(), Some(&many[9].question));
    }
    // What was in no list when the index was kept, or came later, is loose when it is read again.
    let store = FileStore::open(&path, embedder).await.unwrap();
    store.add(&[example("A late one")]).await.unwrap();
    assert_eq!(first(&store, "A late one").await.unwrap(), "A late one");
    let size = store.size();
    assert!(size.examples == count + 1 && size.loose < 2_048, "{size:?}");
    for one in many.iter().step_by(997) {
        assert_eq!(first(&store, &one.question).await.as_ref(), Some(&one.question));
    }
    // Counting changes no list.
    store.change(&[(&many[5].id, Change { uses: 1, ..Change::default() })]).await.unwrap();
    first(&store, "x").await;
    assert_eq!(store.size().loose, size.loose);
}

#[tokio::test]
async fn f06_an_example_that_takes_a_row_over_is_not_taken_for_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.db");
    let store = FileStore::open(&path, fixed()).await.unwrap();
    let (before, after) = (example("Which singers are from France?"), example("How many orders came in March?"));
    store.add(std::slice::from_ref(&before)).await.unwrap();
    assert!(first(&store, &before.question).await.is_some());
    // A search for the new question has found the old example, and is about to look at it closely,
    let vector = store.vector(&after.question).await.unwrap();
    let old = form::reader(&path).unwrap();
    let snapshot = old.unchecked_transaction().unwrap();
    assert_eq!(rows::count(&snapshot, &Filter::default()).unwrap(), 1);
    let mut near = store.shared.mirror().nearest(&Query::from(&code(&vector)), 1);
    let (row, likeness) = (near[0].row, near[0].candidate.similarity);
    assert!(likeness < 0.5, "{likeness}");
    // when others forget that one, and add one that is exactly what is sought.
    store.remove(&[&before.id]).await.unwrap();
    assert_eq!(first(&store, &before.question).await, None);
    store.add(std::slice::from_ref(&after)).await.unwrap();
    assert_eq!(first(&store, &after.question).await.as_deref(), Some(after.question.as_str()));
    assert_eq!(store.shared.mirror().nearest(&Query::from(&code(&vector)), 1)[0].row, row, "it has the row");
    assert!(store.shared.refine(&snapshot, &vector, &mut near).is_ok());
    assert_eq!(near[0].candidate.similarity, likeness, "the old example is no more like the question than it was");
}

#[test]
fn f06_a_row_that_changed_while_its_list_was_sought_stays_loose() {
    use crate::vectors::Vectors;
    let [one, other] = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]].map(|vector| code(&vector));
    let centres = |all: &[&Coded]| Centres::read(4, all.iter().map(|one| (one.scale, one.codes.as_slice()))).unwrap();
    let both = centres(&[&one, &other]);
    let mut vectors = Vectors::new(4);
    vectors.adopt(both.clone());
    (0..3).for_each(|row| vectors.put(row, one.scale, &one.codes));
    let rows = vectors.some_loose(9);
    // One is forgotten, another one is another example now.
    vectors.remove(1);
    vectors.put(2, other.scale, &other.codes);
    index::settle(&mut vectors, &centres(&[&other, &one]), &rows, &[1; 3]);
    assert_eq!(vectors.loose(), 2, "lists of other centres are not these");
    index::settle(&mut vectors, &both, &rows, &[0; 3]);
    assert_eq!((vectors.listed(0), vectors.loose(), vectors.len()), (&[0][..], 1, 2));
}
