//! Spark: the plan that it makes of a text before anything is resolved. Its root is a query, and no command.

#[allow(dead_code)]
#[path = "../../../src/hive/value.rs"]
mod value;

use std::io::{Read, Write};
use std::net::TcpStream;

use querymend_engine::open;
use querymend_testing::{exclusive, is_full};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
};
use url::Url;

use self::value::{Allowance, Value};
use super::material::Material;
use super::{Seen, Tally, address, approved, files, open_folder};

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
    session: Option<Value>,
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
        let opened = unlocked
            .call("OpenSession", vec![(1, Value::Int(7)), (2, Value::text("reader")), (3, Value::text("reader"))]);
        unlocked.session = opened.take(3);
        unlocked
    }

    fn call(&mut self, name: &str, request: Vec<(i16, Value)>) -> Value {
        let mut message = Vec::new();
        let mut to = TBinaryOutputProtocol::new(&mut message, true);
        to.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, 1)).unwrap();
        Value::Struct(vec![(1, Value::Struct(request))]).write(&mut to).unwrap();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        self.stream.write_all(&[&length[..], &message].concat()).unwrap();
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut reply = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut reply).unwrap();
        let mut from = TBinaryInputProtocol::new(std::io::Cursor::new(reply), true);
        from.read_message_begin().unwrap();
        Value::read(&mut from, &mut Allowance(64 << 20)).unwrap().take(0).unwrap()
    }

    /// The first column of what a statement gives, or what the server said.
    fn run(&mut self, sql: &str) -> Result<Vec<Value>, String> {
        let session = self.session.clone().unwrap();
        let begun = self.call("ExecuteStatement", vec![(1, session), (2, Value::text(sql)), (4, Value::Bool(false))]);
        let status = begun.field(1).unwrap().clone();
        let Some(operation) = begun.take(2) else {
            return Err(status.field(5).and_then(Value::string).unwrap_or_default());
        };
        let asked = vec![(1, operation.clone()), (2, Value::Int(0)), (3, Value::Long(10_000))];
        let rows = self.call("FetchResults", asked).take(3).and_then(|rows| rows.take(3)).map(Value::into_list);
        self.call("CloseOperation", vec![(1, operation)]);
        Ok(rows.unwrap_or_default())
    }

    fn classify(&mut self, sql: &str) -> Seen {
        let columns = match self.run(&format!("EXPLAIN EXTENDED\n{sql}")) {
            Ok(columns) => columns,
            // Nothing is run to explain it: it could not be read as one statement.
            Err(_) => return Seen::Refused,
        };
        let text =
            columns.into_iter().next().and_then(|column| column.take_only()).and_then(|(_, texts)| texts.take(1));
        let plan =
            text.as_ref().map(Value::list).unwrap_or_default().first().and_then(Value::string).unwrap_or_default();
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

#[tokio::test]
async fn c01_what_is_approved_is_one_read_to_spark() {
    let Some(address) = address("spark") else { return };
    let _lock = exclusive("spark");
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
    let mut tally = Tally::new("spark");
    for (i, text) in Material::new("spark", folder.path(), folder.path()).fewer(2).texts().into_iter().enumerate() {
        tally.tried();
        let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
        tally.note(query.sql(), unlocked.classify(query.sql()));
        // The first are those that others are made of. In a quick run all are classified, and every fourth is run.
        if (is_full() && i < 150) || i % 4 == 0 {
            tally.through_the_door(&*engine, &query).await;
        }
    }
    tally.end();
    assert_eq!(unlocked.state(), before);
    assert_eq!(files(folder.path()), lying);
    unlocked.run("DROP DATABASE proof CASCADE").unwrap();
}
