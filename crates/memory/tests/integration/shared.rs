//! Stores on servers: what several programs see of each other, and what is refused.

use std::sync::Arc;

use querymend_memory::{
    Error, Example, ExampleFilter, ExampleQuery, ExampleStore, ExampleUpdate, VerificationStatus, open,
};
use querymend_model::{Embedder, StaticEmbedder};

use crate::servers;

fn embedder() -> Arc<dyn Embedder> {
    Arc::new(StaticEmbedder::builtin().unwrap())
}

async fn opened(address: &str) -> Arc<dyn ExampleStore> {
    open(address, embedder()).await.unwrap()
}

async fn refused(address: &str, embedder: Arc<dyn Embedder>) -> Error {
    open(address, embedder).await.err().unwrap()
}

fn example(question: &str) -> Example {
    Example::new(question, "SELECT 1", "shop", "sqlite")
}

async fn finds(store: &dyn ExampleStore, question: &str) -> Vec<Example> {
    let sought = ExampleQuery {
        question,
        database: "shop",
        dialect: None,
        only_database: false,
        only_verified: false,
        limit: 5,
    };
    store.search(&sought).await.unwrap().into_iter().map(|found| found.example).collect()
}

fn addresses() -> Vec<String> {
    [servers::chroma(), servers::postgres()].into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_visible_to_other_clients_at_once() {
    for server in addresses() {
        let address = servers::fresh(&server);
        let (here, there) = (opened(&address).await, opened(&address).await);
        assert_eq!(here.name(), there.name());
        let one = example("How many orders were there in March?");
        assert_eq!(here.add(std::slice::from_ref(&one)).await.unwrap(), 1);
        assert_eq!(there.add(std::slice::from_ref(&one)).await.unwrap(), 0);
        assert_eq!(finds(&*there, "orders in March").await[0], one);
        there.update(&[(&one.id, ExampleUpdate { helped: 2, ..ExampleUpdate::default() })]).await.unwrap();
        assert_eq!(here.get(&one.id).await.unwrap().unwrap().helped, 2);
        assert_eq!(here.remove(&[&one.id]).await.unwrap(), 1);
        assert!(finds(&*there, "orders in March").await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_add_the_same_examples_concurrently() {
    for server in addresses() {
        let address = servers::fresh(&server);
        let all: Vec<Example> = (0..40).map(|at| example(&format!("How many of kind {at}?"))).collect();
        let mut programs = Vec::new();
        for program in 0..6 {
            let (address, mut mine) = (address.clone(), all.clone());
            // Each has another order: two that wait for each other would never end.
            mine.rotate_left(program * 7);
            programs.push(tokio::spawn(async move {
                let store = opened(&address).await;
                let mut new = 0;
                for _ in 0..3 {
                    new += store.add(&mine).await.unwrap();
                    for part in mine.chunks(10) {
                        let changes: Vec<(&str, ExampleUpdate)> = part
                            .iter()
                            .map(|one| (one.id.as_str(), ExampleUpdate { uses: 1, ..ExampleUpdate::default() }))
                            .collect();
                        assert_eq!(store.update(&changes).await.unwrap(), part.len());
                    }
                }
                new
            }));
        }
        let mut new = 0;
        for program in programs {
            new += program.await.unwrap();
        }
        let store = opened(&address).await;
        assert_eq!(store.count(&ExampleFilter::default()).await.unwrap(), 40);
        if server.starts_with("postgres") {
            // ChromaDB cannot promise either.
            assert_eq!(new, 40);
            let kept = store.list(&ExampleFilter::default(), 0, 100).await.unwrap();
            assert!(kept.iter().all(|one| one.uses == 18), "no count is lost");
        }
    }
}

/// An embedder by another name.
struct Other;

impl Embedder for Other {
    fn name(&self) -> &str {
        "other"
    }

    fn dimensions(&self) -> Option<usize> {
        None
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, querymend_model::Error>> + Send + 'a>> {
        Box::pin(async move { Ok(texts.iter().map(|_| vec![0.6, 0.8]).collect()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_store_of_another_embedder() {
    for server in addresses() {
        let address = servers::fresh(&server);
        let store = opened(&address).await;
        store.add(&[example("How many orders?")]).await.unwrap();
        let error = refused(&address, Arc::new(Other)).await;
        assert!(matches!(error, Error::Unusable { .. }) && error.to_string().contains("`other` (2)"), "{error}");
        assert!(error.hint().unwrap().contains("another"));
        assert_eq!(store.count(&ExampleFilter::default()).await.unwrap(), 1);
        // An embedder that has to be asked how long its vectors are.
        let other = open(&servers::fresh(&server), Arc::new(Other)).await.unwrap();
        assert_eq!(other.add(&[example("How many orders?")]).await.unwrap(), 1);
        assert_eq!(finds(&*other, "anything").await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_examples_do_not_hide_valid_ones() {
    for server in addresses() {
        let store = opened(&servers::fresh(&server)).await;
        let rejected = (0..300).map(|at| Example {
            standing: VerificationStatus::Rejected,
            ..example(&format!("How many orders were there in March, number {at}?"))
        });
        let good = example("Which singers are from France?");
        store.add(&rejected.chain([good.clone()]).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(finds(&*store, "How many orders were there in March?").await, [good]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_tables_that_hold_no_examples() {
    if let Some(server) = servers::postgres() {
        // A table of PostgreSQL's own, which every server has.
        let error = refused(&servers::named(&server, "pg_catalog.pg_class"), embedder()).await;
        assert!(error.to_string().contains("something other than examples"), "{error}");
        let error = refused(&servers::named(&server, "nowhere.examples"), embedder()).await;
        assert!(error.to_string().contains("nowhere") && error.hint().unwrap().contains("schema"), "{error}");
    }
    if let Some(server) = servers::chroma() {
        let error = refused(&format!("{}?tenant=nobody", servers::fresh(&server)), embedder()).await;
        assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_access_gives_a_hint() {
    let Some(server) = servers::postgres() else { return };
    let error = refused(&server.replace("postgres@", "stranger@"), embedder()).await;
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    assert!(error.to_string().contains("stranger") && error.hint().unwrap().contains("PGPASSWORD"), "{error:?}");
    let error = refused(&format!("{}_not", server), embedder()).await;
    assert!(matches!(error, Error::Unusable { .. }) && error.to_string().contains("postgres_not"), "{error:?}");
    // The server of the test has no certificate.
    let error = refused(&format!("{server}?sslmode=require"), embedder()).await;
    assert!(error.hint().unwrap().contains("sslmode=disable"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_text_leaves_the_store_usable() {
    for server in addresses() {
        let store = opened(&servers::fresh(&server)).await;
        let odd = example("How many\0orders?");
        match store.add(std::slice::from_ref(&odd)).await {
            Ok(_) => assert_eq!(store.get(&odd.id).await.unwrap(), Some(odd)),
            Err(error) => assert!(matches!(error, Error::Unusable { .. }), "{error:?}"),
        }
        assert_eq!(store.add(&[example("How many orders?")]).await.unwrap(), 1);
    }
}
