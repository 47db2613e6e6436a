//! Trino: the server writes down of what kind each query was, also of those that it refused after reading them.

use std::time::{Duration, Instant};

use querymend_engine::open;
use querymend_testing::{exclusive, hang_timeout, is_full};
use reqwest::{Client, Url};
use serde_json::Value;

use super::material::Material;
use super::{Seen, Tally, address, approved, files, open_folder};

const STATE: &[&str] = &[
    "SELECT id, song FROM memory.proof.canary ORDER BY id",
    "SELECT table_schema, table_name, table_type FROM memory.information_schema.tables ORDER BY 1, 2",
    "SELECT table_schema, table_name, column_name, data_type FROM memory.information_schema.columns ORDER BY 1, 2, 3",
    "SELECT schema_name FROM memory.information_schema.schemata ORDER BY 1",
    "SHOW CATALOGS",
    "SHOW SESSION",
    "SHOW FUNCTIONS FROM memory.proof",
];

/// A client without any lock.
struct Unlocked {
    client: Client,
    base: Url,
}

/// What came of a statement.
struct Outcome {
    id: String,
    failed: bool,
    update: Option<String>,
    rows: Vec<Value>,
}

impl Unlocked {
    fn new(address: &str) -> Self {
        let address = Url::parse(address).unwrap();
        let trusted = address.query_pairs().find(|(name, _)| name == "sslrootcert").map(|(_, file)| file.into_owned());
        let host = address.host_str().unwrap();
        let client = querymend_net::http::client(host, trusted.as_deref().map(std::path::Path::new), hang_timeout());
        let base = Url::parse(&format!("https://{host}:{}/", address.port().unwrap())).unwrap();
        Self { client: client.unwrap().build().unwrap(), base }
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Value {
        let request = request.basic_auth("reader", Some("reader")).header("x-trino-catalog", "memory");
        let reply = request.header("x-trino-schema", "proof").header("x-trino-user", "reader").send().await.unwrap();
        serde_json::from_slice(&reply.bytes().await.unwrap()).unwrap_or_default()
    }

    /// Runs a statement to its end, if that is not too far.
    async fn run(&self, sql: &str, most: Duration) -> Outcome {
        let mut step = self.ask(self.client.post(self.base.join("v1/statement").unwrap()).body(sql.to_string())).await;
        let begun = Instant::now();
        let mut rows = Vec::new();
        loop {
            rows.extend(step["data"].as_array().cloned().unwrap_or_default());
            let Some(next) = step["nextUri"].as_str().map(str::to_string) else { break };
            if begun.elapsed() > most {
                self.ask(self.client.delete(next)).await;
                break;
            }
            step = self.ask(self.client.get(next)).await;
        }
        let text = |value: &Value| value.as_str().map(str::to_string);
        Outcome {
            id: text(&step["id"]).unwrap_or_default(),
            failed: !step["error"].is_null(),
            update: text(&step["updateType"]),
            rows,
        }
    }

    async fn classify(&self, sql: &str) -> Seen {
        let seen = self.classified(sql, Duration::from_secs(2)).await;
        // A server that is busy may not have looked at it yet.
        if seen == Seen::Otherwise("None".into()) { self.classified(sql, hang_timeout()).await } else { seen }
    }

    async fn classified(&self, sql: &str, most: Duration) -> Seen {
        let outcome = self.run(sql, most).await;
        if let Some(update) = outcome.update {
            return Seen::Otherwise(update);
        }
        let noted =
            self.ask(self.client.get(self.base.join(&format!("v1/query/{}?pruned=true", outcome.id)).unwrap())).await;
        match noted["queryType"].as_str() {
            Some("SELECT" | "EXPLAIN" | "DESCRIBE") if outcome.failed => Seen::Refused,
            Some("SELECT" | "EXPLAIN" | "DESCRIBE") => Seen::OneRead,
            // It could not be read, so that it is of no kind.
            None if outcome.failed => Seen::Refused,
            kind => Seen::Otherwise(format!("{kind:?}")),
        }
    }

    async fn must(&self, sql: &str) -> Vec<Value> {
        let outcome = self.run(sql, hang_timeout()).await;
        assert!(!outcome.failed, "{sql}");
        outcome.rows
    }

    async fn state(&self) -> Vec<Vec<Value>> {
        let mut state = Vec::new();
        for sql in STATE {
            state.push(self.must(sql).await);
        }
        state
    }
}

#[tokio::test]
async fn c01_what_is_approved_is_one_read_to_trino() {
    let Some(address) = address("trino") else { return };
    let _lock = exclusive("trino");
    let unlocked = Unlocked::new(&address);
    for sql in [
        "CREATE SCHEMA IF NOT EXISTS memory.proof",
        "DROP TABLE IF EXISTS memory.proof.canary",
        "CREATE TABLE memory.proof.canary AS SELECT * FROM (VALUES (1, 'tweet'), (2, 'chirp'), (3, NULL)) AS t (id, song)",
        "CREATE TABLE IF NOT EXISTS memory.proof.heard (what VARCHAR)",
    ] {
        unlocked.must(sql).await;
    }
    // What is no read is seen to be none.
    for sql in [
        "INSERT INTO heard VALUES ('x')",
        "SET SESSION query_max_run_time = '1h'",
        "CREATE TABLE heard (x INT)",
        "COMMIT",
        "DELETE FROM heard",
    ] {
        let seen = unlocked.classified(sql, hang_timeout()).await;
        assert!(matches!(seen, Seen::Otherwise(_)), "{sql}: {seen:?}");
    }
    for (sql, expected) in [
        ("SELECT song FROM canary", Seen::OneRead),
        ("SELECT nothing FROM canary", Seen::Refused),
        ("SELECT 1; SELECT 2", Seen::Refused),
    ] {
        assert_eq!(unlocked.classified(sql, hang_timeout()).await, expected, "{sql}");
    }

    let folder = open_folder();
    let (before, lying) = (unlocked.state().await, files(folder.path()));
    let engine = open(&address.replacen("/memory/default", "/memory/proof", 1)).unwrap();
    let schema = engine.schema().await.unwrap();
    let mut tally = Tally::new("trino");
    // Each text takes it a tenth of a second.
    for (i, text) in Material::new("trino", folder.path(), folder.path()).fewer(2).texts().into_iter().enumerate() {
        tally.tried();
        let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
        tally.note(query.sql(), unlocked.classify(query.sql()).await);
        // The first are those that others are made of. In a quick run all are classified, and every fourth is run.
        if (is_full() && i < 150) || i % 4 == 0 {
            tally.through_the_door(&*engine, &query).await;
        }
    }
    tally.end();
    assert_eq!(unlocked.state().await, before);
    assert_eq!(files(folder.path()), lying);
    for sql in ["DROP TABLE canary", "DROP TABLE heard", "DROP SCHEMA memory.proof"] {
        unlocked.must(sql).await;
    }
}
