//! Spark, through its Thrift server. Hive speaks the same protocol.

#[allow(dead_code)]
#[path = "../../../src/hive/thrift_value.rs"]
mod value;

use querymend_sql::Cell;

use super::{Kinds, Server, Subject};
use crate::support::address;

pub fn subject() -> Option<Subject> {
    let text = |text: &str| Cell::Text(text.into());
    Some(Subject {
        name: "spark",
        address: address("spark")?,
        endless: "SELECT count(*) FROM range(1000000000000) AS a CROSS JOIN range(1000000000000) AS b WHERE a.id * b.id = -1",
        flood: "SELECT id, 'padding' FROM range(1000000)",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT CAST('12345678901234567890.50' AS DECIMAL(38, 2))"),
            float: "SELECT CAST(0.1 AS DOUBLE)",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O\\'Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: None,
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678'"),
            // Moments are kept without a zone and shown in that of the session, which is UTC.
            zoned: Some(("SELECT TIMESTAMP '2024-02-29 13:14:15+02:00'", "2024-02-29 11:14:15")),
            truth: Some("SELECT 1 < 2"),
            null: "SELECT NULL",
            bytes: Some("SELECT x'0FA0'"),
            list: Some("SELECT array(1, 2, NULL)"),
            json: Some("SELECT get_json_object('{\"x\": {\"a\": [1, \"x\"]}}', '$.x')"),
            own: vec![
                ("SELECT CAST(-128 AS TINYINT)", Cell::Integer(-128)),
                ("SELECT CAST(0.1 AS FLOAT)", Cell::Number(0.1)),
                ("SELECT CAST('Infinity' AS DOUBLE)", Cell::Number(f64::INFINITY)),
                ("SELECT 0.10", Cell::Decimal("0.10".into())),
                ("SELECT map('a', 1)", text("{\"a\":1}")),
                ("SELECT named_struct('a', array(1, 2), 'b', 'x')", text("{\"a\":[1,2],\"b\":\"x\"}")),
                ("SELECT INTERVAL '1 02:03:04' DAY TO SECOND", text("1 02:03:04.000000000")),
            ],
        },
        moments: "SELECT CAST('2024-03-15' AS DATE) AS d, CAST('2023-12-31 23:10:05' AS TIMESTAMP) AS t",
        // Hive's metastore has such names for columns only.
        unicode_table: "groessen",
        is_slow: true,
        transpile_sample: Some(3),
        connection_counter: None,
        has_keys: false,
        // It believes every password; one that does not is imitated in the tests of the engine.
        server: Some(Server { wrong_password: None }),
        folder: None,
    })
}

mod attacks {
    //! Spark: the plan that it makes of a text before anything is resolved. Its root is a query, and no command.

    use std::io::{Read, Write};
    use std::net::TcpStream;

    use querymend_engine::open;
    use querymend_sql::EngineError;
    use querymend_testing::{is_full_suite, lock_server};
    use thrift::protocol::{
        TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
    };
    use url::Url;

    use super::value::{ReadBudget, ThriftValue};
    use crate::attacks::corpora::Material;
    use crate::attacks::{Seen, Tally, approved, files, open_folder};
    use crate::support::address;

    const STATE: &[&str] = &[
        "SELECT * FROM canary ORDER BY id",
        "SHOW DATABASES",
        "SHOW TABLES",
        "SHOW VIEWS",
        "SHOW USER FUNCTIONS",
        "DESCRIBE canary",
        "SET",
        "LIST JARS",
    ];

    /// What a plan of a query may begin with; all else is a command, or is not known.
    const QUERIES: &[&str] = &[
        "Project",
        "Aggregate",
        "Filter",
        "Sort",
        "GlobalLimit",
        "LocalLimit",
        "Offset",
        "Distinct",
        "Union",
        "Intersect",
        "Except",
        "CTE",
        "UnresolvedWith",
        "SubqueryAlias",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedRelation",
        "UnresolvedInlineTable",
        "LocalRelation",
        "UnresolvedHaving",
        "UnresolvedTableValuedFunction",
        "WithWindowDefinition",
        "Generate",
        "Pivot",
        "Unpivot",
        "Sample",
        "Join",
        "RepartitionByExpression",
        "UnresolvedHint",
        "OneRowRelation",
        "Range",
    ];

    /// Whether a node of a plan does more than to read. Below WITH, there may be any.
    fn writes(node: &str) -> bool {
        const WRITING: &[&str] =
            &["Insert", "Create", "Replace", "Delete", "Update", "Merge", "Drop", "ScriptTransformation"];
        WRITING.iter().any(|begin| node.starts_with(begin))
            || (node.ends_with("Command") && !["ExplainCommand", "DescribeQueryCommand"].contains(&node))
    }

    /// A session without any lock, spoken to in the protocol of HiveServer2.
    struct Unlocked {
        stream: TcpStream,
        session: Option<ThriftValue>,
    }

    impl Unlocked {
        fn open(address: &str) -> Self {
            let address = Url::parse(address).unwrap();
            let stream = TcpStream::connect((address.host_str().unwrap(), address.port().unwrap())).unwrap();
            let mut unlocked = Self { stream, session: None };
            // SASL: who asks, in plain words.
            for (status, words) in [(1_u8, "PLAIN"), (2, "\0reader\0reader")] {
                let length = u32::try_from(words.len()).unwrap().to_be_bytes();
                unlocked.stream.write_all(&[&[status][..], &length, words.as_bytes()].concat()).unwrap();
            }
            let mut welcome = [0; 5];
            unlocked.stream.read_exact(&mut welcome).unwrap();
            assert_eq!(welcome[0], 5, "not welcome");
            let opened = unlocked.call(
                "OpenSession",
                vec![
                    (1, ThriftValue::Int(7)),
                    (2, ThriftValue::from_text("reader")),
                    (3, ThriftValue::from_text("reader")),
                ],
            );
            unlocked.session = opened.take_field(3);
            unlocked
        }

        fn call(&mut self, name: &str, request: Vec<(i16, ThriftValue)>) -> ThriftValue {
            let mut message = Vec::new();
            let mut to = TBinaryOutputProtocol::new(&mut message, true);
            to.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, 1)).unwrap();
            ThriftValue::Struct(vec![(1, ThriftValue::Struct(request))]).write(&mut to).unwrap();
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            self.stream.write_all(&[&length[..], &message].concat()).unwrap();
            let mut length = [0; 4];
            self.stream.read_exact(&mut length).unwrap();
            let mut reply = vec![0; u32::from_be_bytes(length) as usize];
            self.stream.read_exact(&mut reply).unwrap();
            let mut from = TBinaryInputProtocol::new(std::io::Cursor::new(reply), true);
            from.read_message_begin().unwrap();
            ThriftValue::read(&mut from, &mut ReadBudget(64 << 20)).unwrap().take_field(0).unwrap()
        }

        /// The first column of what a statement gives, or what the server said.
        fn run(&mut self, sql: &str) -> Result<Vec<ThriftValue>, String> {
            let session = self.session.clone().unwrap();
            let begun = self.call(
                "ExecuteStatement",
                vec![(1, session), (2, ThriftValue::from_text(sql)), (4, ThriftValue::Bool(false))],
            );
            let status = begun.field(1).unwrap().clone();
            let Some(operation) = begun.take_field(2) else {
                return Err(status.field(5).and_then(ThriftValue::as_string).unwrap_or_default());
            };
            let asked = vec![(1, operation.clone()), (2, ThriftValue::Int(0)), (3, ThriftValue::Long(10_000))];
            let rows = self
                .call("FetchResults", asked)
                .take_field(3)
                .and_then(|rows| rows.take_field(3))
                .map(ThriftValue::into_list);
            self.call("CloseOperation", vec![(1, operation)]);
            Ok(rows.unwrap_or_default())
        }

        fn classify(&mut self, sql: &str) -> Seen {
            let columns = match self.run(&format!("EXPLAIN EXTENDED\n{sql}")) {
                Ok(columns) => columns,
                // Nothing is run to explain it: it could not be read as one statement.
                Err(_) => return Seen::Refused,
            };
            let text = columns
                .into_iter()
                .next()
                .and_then(|column| column.take_union_field())
                .and_then(|(_, texts)| texts.take_field(1));
            let plan = text
                .as_ref()
                .map(ThriftValue::as_list)
                .unwrap_or_default()
                .first()
                .and_then(ThriftValue::as_string)
                .unwrap_or_default();
            let Some(parsed) = plan.strip_prefix("== Parsed Logical Plan ==\n") else {
                return Seen::Otherwise(format!("no plan: {plan}"));
            };
            let word = |text: &str| {
                text.trim_start_matches('\'').chars().take_while(char::is_ascii_alphanumeric).collect::<String>()
            };
            let mut root = word(parsed);
            // They run nothing, and are as harmless as what they tell of.
            if root == "ExplainCommand" {
                root = word(parsed.trim_start_matches('\'').trim_start_matches("ExplainCommand "));
            } else if root == "DescribeQueryCommand" {
                root = "Project".into();
            }
            let (parsed, rest) = parsed.split_once("\n== Analyzed Logical Plan ==").unwrap_or((parsed, ""));
            if !QUERIES.contains(&root.as_str()) {
                Seen::Otherwise(format!("a plan that begins with {root}"))
            } else if let Some(node) =
                parsed.lines().map(|line| word(line.trim_start_matches([' ', ':', '+', '-']))).find(|node| writes(node))
            {
                Seen::Otherwise(format!("a plan with {node} in it"))
            } else if rest.contains("AnalysisException") || rest.contains("== Physical Plan ==\norg.apache.spark") {
                Seen::Refused
            } else {
                Seen::OneRead
            }
        }

        fn state(&mut self) -> Vec<String> {
            STATE.iter().map(|sql| format!("{:?}", self.run(sql).unwrap())).collect()
        }
    }

    fn is_read_only_error(_: &str, error: &EngineError) -> bool {
        error.code == "25006"
    }

    #[tokio::test]
    async fn approved_sql_is_one_read_in_spark() {
        let Some(address) = address("spark") else { return };
        let _lock = lock_server("spark");
        let mut unlocked = Unlocked::open(&address);
        for sql in [
            "DROP DATABASE IF EXISTS proof CASCADE",
            "CREATE DATABASE proof",
            "USE proof",
            "CREATE TABLE canary (id INT, song STRING) USING parquet",
            "INSERT INTO canary VALUES (1, 'tweet'), (2, 'chirp'), (3, NULL)",
            "CREATE VIEW songs AS SELECT song FROM canary",
            // Read as the engine has texts read.
            "SET spark.sql.variable.substitute=false",
        ] {
            unlocked.run(sql).unwrap_or_else(|said| panic!("{sql}: {said}"));
        }
        // What is no read is seen to be none.
        for sql in [
            "INSERT INTO canary VALUES (9, 'x')",
            "DROP TABLE canary",
            "FROM canary INSERT INTO canary SELECT *",
            "WITH x AS (SELECT 1 AS id, 'x' AS song) INSERT INTO canary SELECT * FROM x",
            "CACHE TABLE stolen AS SELECT 1",
            "SET x = 1",
            "SHOW TABLES",
            "SELECT TRANSFORM(song) USING 'cat' FROM canary",
            "EXPLAIN DROP TABLE canary",
            "CREATE TABLE stolen AS SELECT 1",
            "INSERT OVERWRITE DIRECTORY 'x' USING csv SELECT 1",
        ] {
            let seen = unlocked.classify(sql);
            assert!(matches!(seen, Seen::Otherwise(_)), "{sql}: {seen:?}");
        }
        assert_eq!(unlocked.classify("SELECT song FROM songs"), Seen::OneRead);
        assert_eq!(unlocked.classify("EXPLAIN SELECT song FROM songs"), Seen::OneRead);
        for sql in ["SELECT nothing FROM songs", "SELECT 1; SELECT 2", "SELECT FROM FROM"] {
            assert_eq!(unlocked.classify(sql), Seen::Refused, "{sql}");
        }

        let folder = open_folder();
        let (before, lying) = (unlocked.state(), files(folder.path()));
        let engine = open(&address.replacen("/default", "/proof", 1)).unwrap();
        let schema = engine.schema().await.unwrap();
        let mut tally = Tally::new("spark", is_read_only_error);
        for (i, text) in Material::new("spark", folder.path(), folder.path()).fewer(2).texts().into_iter().enumerate() {
            tally.tried();
            let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
            tally.note(query.sql(), unlocked.classify(query.sql()));
            // The first are those that others are made of. In a quick run all are classified, and every fourth is run.
            if (is_full_suite() && i < 150) || i % 4 == 0 {
                tally.through_the_door(&*engine, &query).await;
            }
        }
        tally.end();
        assert_eq!(unlocked.state(), before);
        assert_eq!(files(folder.path()), lying);
        unlocked.run("DROP DATABASE proof CASCADE").unwrap();
    }
}

mod tls {
    use crate::encrypted::{Encrypted, Greeting, assert_connects, assert_tls_rejected};
    use crate::support::address;

    #[tokio::test]
    async fn trusts_spark_by_its_certificate_only() {
        let Some(address) = address("spark") else { return };
        let encrypted = Encrypted::start(&address, Greeting::AtOnce);
        let place = format!("spark://reader:reader@127.0.0.1:{}/default?auth=plain&tls=true", encrypted.port);
        assert_connects(&format!("{place}&sslrootcert={}", encrypted.folder.path().join("ca.pem").display())).await;
        assert_tls_rejected(&place, "cannot establish a TLS connection", "sslrootcert").await;
        // It is asked in the clear by nobody who wants TLS.
        assert_tls_rejected(&format!("{address}&tls=true"), "cannot establish a TLS connection", "tls=false").await;
    }
}
