//! Opens example stores by address.

use std::pin::Pin;
use std::sync::Arc;

use querymend_model::Embedder;

use crate::ExampleStore;
use crate::chroma::ChromaStore;
use crate::error::Error;
use crate::file::FileStore;
use crate::postgres::PostgresStore;

/// Future of a store that is being opened.
type StoreFuture<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn ExampleStore>, Error>> + Send + 'a>>;

/// Driver for one kind of store.
struct StoreDriver {
    /// URL schemes of its addresses.
    schemes: &'static [&'static str],
    /// Format of its addresses, for messages.
    url_format: &'static str,
    /// Opens the store at an address with one of these schemes.
    open: fn(&str, Arc<dyn Embedder>) -> StoreFuture<'_>,
}

/// All drivers. An address without a scheme is a file path.
static STORE_DRIVERS: &[StoreDriver] = &[
    StoreDriver { schemes: &["chroma", "chromas"], url_format: "chroma://HOST:PORT/COLLECTION", open: open_chroma },
    StoreDriver {
        schemes: &["postgres", "postgresql"],
        url_format: "postgres://USER@HOST:PORT/DATABASE?table=TABLE",
        open: open_postgres,
    },
];

/// Opens the store at an address.
///
/// | address | store |
/// |---|---|
/// | a path | a single file, created if it does not exist |
/// | `chroma://HOST:PORT/COLLECTION` | a collection on a ChromaDB server; `chromas://` with TLS |
/// | `postgres://USER@HOST:PORT/DATABASE?table=TABLE` | a PostgreSQL table with pgvector |
///
/// Missing collections and tables are created. Addresses never contain secrets: see
/// [`ChromaStore::open`] and [`PostgresStore::open`] for the places that they are read from.
pub async fn open(spec: &str, embedder: Arc<dyn Embedder>) -> Result<Arc<dyn ExampleStore>, Error> {
    let spec = spec.trim();
    let wrong = |message: String| Err(Error::Unusable { message, hint: url_formats_hint() });
    if spec.is_empty() {
        return wrong("no store of examples was named".into());
    }
    let scheme = spec.split_once(':').map(|(scheme, _)| scheme.to_lowercase()).unwrap_or_default();
    let kind = STORE_DRIVERS.iter().find(|kind| kind.schemes.contains(&scheme.as_str()));
    match (kind, spec.contains("://")) {
        (Some(kind), true) => (kind.open)(spec, embedder).await,
        // Only the scheme is echoed: the rest may contain a password.
        (None, true) => wrong(format!("there is no store of examples for `{scheme}://` addresses")),
        (Some(_), false) => wrong(format!("`{scheme}:` must be followed by `//`")),
        (None, false) => Ok(Arc::new(FileStore::open(spec, embedder).await?)),
    }
}

/// Returns a hint that lists the address formats.
fn url_formats_hint() -> String {
    let forms: Vec<&str> = STORE_DRIVERS.iter().map(|kind| kind.url_format).collect();
    format!("examples are stored in a file, given by its path, or on {}", forms.join(", or on "))
}

fn open_chroma(spec: &str, embedder: Arc<dyn Embedder>) -> StoreFuture<'_> {
    Box::pin(async move { Ok(Arc::new(ChromaStore::open(spec, embedder).await?) as Arc<dyn ExampleStore>) })
}

fn open_postgres(spec: &str, embedder: Arc<dyn Embedder>) -> StoreFuture<'_> {
    Box::pin(async move { Ok(Arc::new(PostgresStore::open(spec, embedder).await?) as Arc<dyn ExampleStore>) })
}

#[cfg(test)]
mod tests {
    use querymend_model::StaticEmbedder;

    use super::*;

    async fn refused(spec: &str) -> (String, String) {
        let error = open(spec, Arc::new(StaticEmbedder::builtin().unwrap())).await.err().unwrap();
        (error.to_string(), error.hint().unwrap_or_default().to_string())
    }

    #[tokio::test]
    async fn opens_a_path_as_a_file_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("examples: ünïx.db");
        let store = open(path.to_str().unwrap(), Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap();
        assert_eq!(store.count(&crate::ExampleFilter::default()).await.unwrap(), 0);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn reports_invalid_addresses_without_secrets() {
        for (spec, says, hint) in [
            ("", "no store", "chroma://"),
            ("redis://me:hunter2@host/1", "`redis://`", "postgres://"),
            ("chroma:shop", "must be followed by `//`", "chroma://"),
            ("chroma://127.0.0.1:8000", "has no collection", "chroma://HOST:PORT/COLLECTION"),
            ("chroma://127.0.0.1:8000/a/b", "has no collection", "chroma://HOST:PORT/COLLECTION"),
            ("chroma://127.0.0.1:8000/x", "cannot be the name of a collection", "letters"),
            ("chroma:///examples", "has no host", "chroma://HOST:PORT/COLLECTION"),
            ("chroma://me:hunter2@127.0.0.1:8000/examples", "a password", "CHROMA_TOKEN"),
            ("chroma://127.0.0.1:8000/examples?token=hunter2", "`token`", "CHROMA_TOKEN"),
            ("chroma://127.0.0.1:8000/examples?colour=red", "`colour`", "tenant, database"),
            ("chroma://127.0.0.1:port/examples", "is not valid", "chroma://HOST:PORT/COLLECTION"),
            ("postgres://me:hunter2@127.0.0.1/shop", "a password", "PGPASSWORD"),
            ("postgres://me@127.0.0.1/shop?password=hunter2", "`password`", "PGPASSWORD"),
            ("postgres://me@127.0.0.1/", "has no database", "postgres://USER@HOST:PORT/DATABASE"),
            ("postgres:///shop", "has no host", "postgres://USER@HOST:PORT/DATABASE"),
            ("postgres://me@127.0.0.1/shop?table=a;drop", "cannot be the name of a table", "letters"),
            ("postgres://me@127.0.0.1/shop?table=a.b.c", "cannot be the name of a table", "letters"),
            ("postgres://me@127.0.0.1/shop?sslmode=maybe", "`maybe`", "disable"),
        ] {
            let (message, help) = refused(spec).await;
            assert!(message.contains(says), "{spec}: {message}");
            assert!(help.contains(hint), "{spec}: {help}");
            assert!(!message.contains("hunter2") && !help.contains("hunter2"), "{spec}: {message} {help}");
        }
    }

    #[tokio::test]
    async fn reports_an_absent_server_as_unavailable() {
        // A port without a listener, kept bound so that no other test uses it.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let port = socket.local_addr().unwrap().port();
        for spec in [format!("chroma://127.0.0.1:{port}/examples"), format!("postgres://me@127.0.0.1:{port}/shop")] {
            let error = open(&spec, Arc::new(StaticEmbedder::builtin().unwrap())).await.err().unwrap();
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
            assert!(error.to_string().contains(&port.to_string()) && error.hint().is_some(), "{error:?}");
        }
    }
}
