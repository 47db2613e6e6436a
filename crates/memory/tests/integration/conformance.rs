//! What every store of examples does, checked on each of them.
//!
//! To add a store: a [`Kind`] that makes an empty one, and a test that calls [`keeps_to_the_suite`] with it.

mod checks;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use querymend_memory::{ExampleStore, FileStore};
use querymend_model::StaticEmbedder;

use crate::servers;

/// An empty store, and what has to live as long as it does.
type Fresh = (Arc<dyn ExampleStore>, Box<dyn Any>);

/// Makes an empty store.
type Kind<'a> = &'a dyn Fn() -> Pin<Box<dyn Future<Output = Fresh>>>;

/// Runs every check on a store of its own.
async fn keeps_to_the_suite(kind: Kind<'_>) {
    for (name, check) in checks::CHECKS {
        let (store, _kept) = kind().await;
        println!("{name}");
        check(store.as_ref()).await;
    }
}

fn file() -> Pin<Box<dyn Future<Output = Fresh>>> {
    Box::pin(async {
        let folder = tempfile::tempdir().unwrap();
        let embedder = Arc::new(StaticEmbedder::builtin().unwrap());
        let store = FileStore::open(folder.path().join("examples.db"), embedder).await.unwrap();
        (Arc::new(store) as Arc<dyn ExampleStore>, Box::new(folder) as Box<dyn Any>)
    })
}

fn on_server(address: String) -> Pin<Box<dyn Future<Output = Fresh>>> {
    Box::pin(async move {
        // Each store has a collection or a table of its own, which goes when the servers of the test go.
        let store = querymend_memory::open(&servers::fresh(&address), Arc::new(StaticEmbedder::builtin().unwrap()))
            .await
            .unwrap();
        (store, Box::new(()) as Box<dyn Any>)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn chroma_store_passes_the_suite() {
    if let Some(address) = servers::chroma() {
        keeps_to_the_suite(&|| on_server(address.clone())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_store_passes_the_suite() {
    if let Some(address) = servers::postgres() {
        keeps_to_the_suite(&|| on_server(address.clone())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_store_passes_the_suite() {
    keeps_to_the_suite(&file).await;
}

#[test]
fn check_names_are_distinct() {
    let names: std::collections::HashSet<&str> = checks::CHECKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), checks::CHECKS.len());
}
