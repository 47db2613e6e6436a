//! From a word to a store.

use std::pin::Pin;
use std::sync::Arc;

use querymend_model::Embedder;

use crate::ExampleStore;
use crate::chroma::ChromaStore;
use crate::error::Error;
use crate::file::FileStore;
use crate::postgres::PostgresStore;

/// A store on its way.
type Opening<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn ExampleStore>, Error>> + Send + 'a>>;

/// One kind of store that has addresses.
struct Kind {
    /// What its addresses begin with.
    schemes: &'static [&'static str],
    /// How its addresses are written.
    form: &'static str,
    /// Opens the store at an address of this form.
    open: fn(&str, Arc<dyn Embedder>) -> Opening<'_>,
}

/// Every kind of store that has addresses. What has none is a file.
static KINDS: &[Kind] = &[
    Kind { schemes: &["chroma", "chromas"], form: "chroma://HOST:PORT/COLLECTION", open: chroma },
    Kind {
        schemes: &["postgres", "postgresql"],
        form: "postgres://USER@HOST:PORT/DATABASE?table=TABLE",
        open: postgres,
    },
];

/// Opens the store that a word means.
///
/// | word | store |
/// |---|---|
/// | a path | one file, which is made if there is none |
/// | `chroma://HOST:PORT/COLLECTION` | a collection on a ChromaDB server; `chromas://` with TLS |
/// | `postgres://USER@HOST:PORT/DATABASE?table=TABLE` | a table of PostgreSQL with pgvector |
///
/// Collections and tables are made if there are none. Secrets are never part of the word: see [`ChromaStore::open`] and
/// [`PostgresStore::open`] for where they are looked for.
pub async fn open(spec: &str, embedder: Arc<dyn Embedder>) -> Result<Arc<dyn ExampleStore>, Error> {
    let spec = spec.trim();
    let wrong = |message: String| Err(Error::Unusable { message, hint: forms() });
    if spec.is_empty() {
        return wrong("no store of examples was named".into());
    }
    let scheme = spec.split_once(':').map(|(scheme, _)| scheme.to_lowercase()).unwrap_or_default();
    let kind = KINDS.iter().find(|kind| kind.schemes.contains(&scheme.as_str()));
    match (kind, spec.contains("://")) {
        (Some(kind), true) => (kind.open)(spec, embedder).await,
        // Only the scheme is repeated: what follows it may hold a password.
        (None, true) => wrong(format!("there is no store of examples for `{scheme}://` addresses")),
        (Some(_), false) => wrong(format!("`{scheme}:` is the beginning of an address, and `//` should follow")),
        (None, false) => Ok(Arc::new(FileStore::open(spec, embedder).await?)),
    }
}

/// How stores are named.
fn forms() -> String {
    let forms: Vec<&str> = KINDS.iter().map(|kind| kind.form).collect();
    format!("examples are kept in a file, named by its path, or on {}", forms.join(", or on "))
}

fn chroma(spec: &str, embedder: Arc<dyn Embedder>) -> Opening<'_> {
    Box::pin(async move { Ok(Arc::new(ChromaStore::open(spec, embedder).await?) as Arc<dyn ExampleStore>) })
}

fn postgres(spec: &str, embedder: Arc<dyn Embedder>) -> Opening<'_> {
    Box::pin(async move { Ok(Arc::new(PostgresStore::open(spec, embedder).await?) as Arc<dyn ExampleStore>) })
}

#[cfg(test)]
mod tests {
    use querymend_model::Static;

    use super::*;

    async fn refused(spec: &str) -> (String, String) {
        let error = open(spec, Arc::new(Static::builtin().unwrap())).await.err().unwrap();
        (error.to_string(), error.hint().unwrap_or_default().to_string())
    }

    #[tokio::test]
    async fn f06_a_path_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("examples: ünïx.db");
        let store = open(path.to_str().unwrap(), Arc::new(Static::builtin().unwrap())).await.unwrap();
        assert_eq!(store.count(&crate::Filter::default()).await.unwrap(), 0);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn f06_a_wrong_address_is_explained_without_its_secrets() {
        for (spec, says, hint) in [
            ("", "no store", "chroma://"),
            ("redis://me:hunter2@host/1", "`redis://`", "postgres://"),
            ("chroma:shop", "`//` should follow", "chroma://"),
            ("chroma://127.0.0.1:8000", "names no collection", "chroma://HOST:PORT/COLLECTION"),
            ("chroma://127.0.0.1:8000/a/b", "names no collection", "chroma://HOST:PORT/COLLECTION"),
            ("chroma://127.0.0.1:8000/x", "cannot be the name of a collection", "letters"),
            ("chroma:///examples", "names no host", "chroma://HOST:PORT/COLLECTION"),
            ("chroma://me:hunter2@127.0.0.1:8000/examples", "a password", "CHROMA_TOKEN"),
            ("chroma://127.0.0.1:8000/examples?token=hunter2", "`token`", "CHROMA_TOKEN"),
            ("chroma://127.0.0.1:8000/examples?colour=red", "`colour`", "tenant, database"),
            ("chroma://127.0.0.1:port/examples", "cannot be read", "chroma://HOST:PORT/COLLECTION"),
            ("postgres://me:hunter2@127.0.0.1/shop", "a password", "PGPASSWORD"),
            ("postgres://me@127.0.0.1/shop?password=hunter2", "`password`", "PGPASSWORD"),
            ("postgres://me@127.0.0.1/", "names no database", "postgres://USER@HOST:PORT/DATABASE"),
            ("postgres:///shop", "names no host", "postgres://USER@HOST:PORT/DATABASE"),
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
    async fn f06_a_server_that_is_not_there_is_unavailable() {
        // A port that nobody listens on, held so that no other test gets it.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let port = socket.local_addr().unwrap().port();
        for spec in [format!("chroma://127.0.0.1:{port}/examples"), format!("postgres://me@127.0.0.1:{port}/shop")] {
            let error = open(&spec, Arc::new(Static::builtin().unwrap())).await.err().unwrap();
            assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
            assert!(error.to_string().contains(&port.to_string()) && error.hint().is_some(), "{error:?}");
        }
    }
}
