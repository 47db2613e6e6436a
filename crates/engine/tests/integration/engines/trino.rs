//! Trino and Presto, on servers that `scripts/engines.sh up trino presto` starts.

use querymend_sql::Cell;

use super::{Kinds, Server, Subject};
use crate::support::address;

pub fn trino() -> Option<Subject> {
    let address = address("trino")?;
    let wrong_password = Some(address.replacen("reader:reader@", "reader:wrong-password@", 1));
    Some(subject("trino", address, Some(1), Server { wrong_password }))
}

pub fn presto() -> Option<Subject> {
    let address = address("presto")?;
    Some(subject("presto", address, Some(2), Server { wrong_password: None }))
}

fn subject(name: &'static str, address: String, transpile_sample: Option<usize>, server: Server) -> Subject {
    let text = |text: &str| Cell::Text(text.into());
    Subject {
        name,
        address,
        endless: "SELECT count(*) FROM tpch.sf1000.lineitem AS a CROSS JOIN tpch.sf1000.lineitem AS b WHERE a.comment < b.comment",
        flood: "SELECT orderkey, 'padding' FROM tpch.sf100.lineitem",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT DECIMAL '12345678901234567890.50'"),
            float: "SELECT DOUBLE '0.1'",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: Some("SELECT TIME '13:14:15.500'"),
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678'"),
            zoned: Some(("SELECT TIMESTAMP '2024-02-29 13:14:15 +02:00'", "2024-02-29 13:14:15+02:00")),
            truth: Some("SELECT true"),
            null: "SELECT NULL",
            bytes: Some("SELECT X'0FA0'"),
            list: Some("SELECT ARRAY[1, 2, NULL]"),
            json: Some("SELECT json_parse('{\"a\": [1, \"x\"]}')"),
            own: vec![
                ("SELECT infinity()", Cell::Number(f64::INFINITY)),
                ("SELECT CAST(1 AS TINYINT)", Cell::Integer(1)),
                ("SELECT REAL '1.5'", Cell::Number(1.5)),
                ("SELECT DOUBLE '1'", Cell::Number(1.0)),
                ("SELECT DOUBLE '0.30000000000000004'", Cell::Number(0.1 + 0.2)),
                ("SELECT INTERVAL '2' DAY", text("2 00:00:00.000")),
                (
                    "SELECT MAP(ARRAY['a'], ARRAY[DECIMAL '12345678901234567890.50'])",
                    text(r#"{"a":12345678901234567890.50}"#),
                ),
                ("SELECT CAST(ROW(1, 'x') AS ROW(a BIGINT, b VARCHAR))", text(r#"{"a":1,"b":"x"}"#)),
                ("SELECT ARRAY[ARRAY[X'0FA0']]", text(r#"[["0fa0"]]"#)),
                ("SELECT ARRAY[TIMESTAMP '2024-02-29 13:14:15.500']", text(r#"["2024-02-29 13:14:15.5"]"#)),
            ],
        },
        moments: "SELECT CAST('2024-03-15' AS DATE) AS d, CAST('2023-12-31 23:10:05' AS TIMESTAMP) AS t",
        unicode_table: "größen 表",
        is_slow: name == "trino",
        transpile_sample,
        connection_counter: None,
        has_keys: false,
        server: Some(server),
        folder: None,
    }
}

mod attacks {
    //! Trino: the server writes down of what kind each query was, also of those that it refused after reading them.

    use std::time::{Duration, Instant};

    use querymend_engine::open;
    use querymend_sql::EngineError;
    use querymend_testing::{hang_timeout, is_full_suite, lock_server};
    use reqwest::{Client, Url};
    use serde_json::Value;

    use crate::attacks::corpora::Material;
    use crate::attacks::{Seen, Tally, approved, files, open_folder};
    use crate::support::address;

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
            let trusted =
                address.query_pairs().find(|(name, _)| name == "sslrootcert").map(|(_, file)| file.into_owned());
            let host = address.host_str().unwrap();
            let client =
                querymend_net::http::client_builder(host, trusted.as_deref().map(std::path::Path::new), hang_timeout());
            let base = Url::parse(&format!("https://{host}:{}/", address.port().unwrap())).unwrap();
            Self { client: client.unwrap().build().unwrap(), base }
        }

        async fn ask(&self, request: reqwest::RequestBuilder) -> Value {
            let request = request.basic_auth("reader", Some("reader")).header("x-trino-catalog", "memory");
            let reply =
                request.header("x-trino-schema", "proof").header("x-trino-user", "reader").send().await.unwrap();
            serde_json::from_slice(&reply.bytes().await.unwrap()).unwrap_or_default()
        }

        /// Runs a statement to its end, if that is not too far.
        async fn run(&self, sql: &str, most: Duration) -> Outcome {
            let mut step =
                self.ask(self.client.post(self.base.join("v1/statement").unwrap()).body(sql.to_string())).await;
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
            let noted = self
                .ask(self.client.get(self.base.join(&format!("v1/query/{}?pruned=true", outcome.id)).unwrap()))
                .await;
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

    fn is_read_only_error(sql: &str, error: &EngineError) -> bool {
        // Trino describes tables and no queries; the engine rejects it by the first word, before the server does.
        error.code == "READ_ONLY_VIOLATION" && !sql.starts_with("DESC")
    }

    #[tokio::test]
    async fn approved_sql_is_one_read_in_trino() {
        let Some(address) = address("trino") else { return };
        let _lock = lock_server("trino");
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
        let mut tally = Tally::new("trino", is_read_only_error);
        // Each text takes it a tenth of a second.
        for (i, text) in Material::new("trino", folder.path(), folder.path()).fewer(2).texts().into_iter().enumerate() {
            tally.tried();
            let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
            tally.note(query.sql(), unlocked.classify(query.sql()).await);
            // The first are those that others are made of. In a quick run all are classified, and every fourth is run.
            if (is_full_suite() && i < 150) || i % 4 == 0 {
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
}

mod tls {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::encrypted::assert_tls_rejected;

    #[tokio::test]
    async fn never_falls_back_from_tls_for_trino() {
        // Whoever speaks HTTP says so when TLS is spoken to them.
        let listening = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listening.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listening.accept().await.unwrap();
                let mut hello = [0; 64];
                drop(client.read(&mut hello).await);
                drop(
                    client
                        .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                        .await,
                );
            }
        });
        for scheme in ["trino", "presto"] {
            let address = format!("{scheme}://reader:reader@127.0.0.1:{port}/memory/default?tls=true");
            assert_tls_rejected(&address, "cannot establish a TLS connection", "sslrootcert").await;
        }
    }
}
