//! `querymend memory`, and what `ask` and `chat` make of it.

use crate::TestDir;
use crate::server::ScriptedModelServer;

const EXAMPLES: &str = "\
- question: How many customers are there?
  expected_sql: SELECT count(*) AS n FROM customers
- question: Which products cost more than 100?
  sql: SELECT name FROM products WHERE price > 100
  metric: expensive products
- question: How many clients are there?
  query: SELECT count(*) FROM clients
";

fn seeded_dir() -> TestDir {
    let place = TestDir::with_demo();
    place.write_file("examples.yaml", EXAMPLES);
    let ended = place.run(&["memory", "seed", "examples.yaml", "--db", "shop.db"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains(
            "not imported, its query cannot be run: How many clients are there? (there is no table `clients`"
        ),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("2 imported, 0 already stored, 1 rejected"), "{}", ended.stderr);
    place
}

fn first_id(place: &TestDir, question: &str) -> String {
    let list = place.run(&["memory", "list", "--format", "json"]).json();
    let found = list.as_array().unwrap().iter().find(|example| example["question"] == question);
    found.unwrap_or_else(|| panic!("{list}"))["id"].as_str().unwrap().to_string()
}

#[test]
fn seeds_lists_searches_and_exports_a_file() {
    let place = seeded_dir();
    let again = place.run(&["memory", "seed", "examples.yaml", "--db", "shop.db"]);
    assert!(again.stderr.contains("0 imported, 2 already stored, 1 rejected"), "{}", again.stderr);
    let list = place.run(&["memory", "list"]);
    assert!(list.stdout.contains("verified") && list.stdout.contains("How many customers"), "{}", list.stdout);
    assert_eq!(list.stdout.lines().count(), 2);
    assert!(list.stderr.contains("2 examples"));
    let found = place.run(&["memory", "search", "what costs over 100", "--db", "shop.db", "--limit", "1"]);
    assert!(
        found.stdout.contains("Which products cost more than 100?") && found.stdout.contains("price > 100"),
        "{}",
        found.stdout
    );
    let id = first_id(&place, "Which products cost more than 100?");
    let show = place.run(&["memory", "show", &id[..6]]);
    for part in [
        "question: Which products cost more than 100?",
        "metric: expensive products",
        "standing: verified, seeded",
        "shop.db",
    ] {
        assert!(show.stdout.contains(part), "{part}: {}", show.stdout);
    }
    let export = place.run(&["memory", "export", "--out", "out.jsonl"]);
    assert_eq!(export.code, 0, "{}", export.stderr);
    let other = place.run(&["memory", "seed", "out.jsonl", "--store", "other.db"]);
    assert!(other.stderr.contains("2 imported"), "{}", other.stderr);
    let stats = place.run(&["memory", "stats", "--store", "other.db", "--format", "json"]).json();
    assert_eq!((stats["examples"].as_u64(), stats["counts"]["seeded"].as_u64()), (Some(2), Some(2)), "{stats}");
}

#[test]
fn approves_rejects_and_removes_examples() {
    let place = seeded_dir();
    let id = first_id(&place, "How many customers are there?");
    let server = ScriptedModelServer::with_replies(&["SELECT 7 AS n"]);
    let ask = ["ask", "--db", "shop.db", "--format", "csv", "--model", &server.model, "How many customers are there?"];
    let remembered = place.run(&ask);
    assert_eq!((remembered.stdout.as_str(), server.requests().len()), ("n\n60\n", 0), "{}", remembered.stderr);
    assert!(
        remembered.stderr.contains("answered from memory, without a model; --fresh asks the model again"),
        "{}",
        remembered.stderr
    );
    let fresh: Vec<&str> = ask.iter().copied().chain(["--fresh"]).collect();
    assert_eq!((place.run(&fresh).stdout.as_str(), server.requests().len()), ("n\n7\n", 1));
    let nothing: Vec<&str> = ask.iter().copied().chain(["--no-memory"]).collect();
    assert_eq!(place.run(&nothing).stdout, "n\n7\n");
    // The trace tells where it came from.
    let story =
        place.run(&["ask", "--db", "shop.db", "--explain", "--model", &server.model, "How many customers are there?"]);
    assert!(
        story.stderr.contains("memory: the same question was answered before; its query is tried"),
        "{}",
        story.stderr
    );

    let rejected = place.run(&["memory", "reject", &id[..8]]);
    assert!(rejected.code == 0 && rejected.stderr.contains("rejected: How many customers are there?"));
    assert_eq!(place.run(&ask).stdout, "n\n7\n");
    assert_eq!(place.run(&["memory", "approve", &id[..8]]).code, 0);
    assert_eq!(place.run(&ask).stdout, "n\n60\n");
    // A slip in one changes none.
    let slip = place.run(&["memory", "remove", &id[..8], "zzzz"]);
    assert_eq!(slip.code, 2);
    assert!(slip.stderr.contains("there is no example `zzzz`"), "{}", slip.stderr);
    assert!(place.run(&["memory", "remove", &id[..8]]).stderr.contains("1 forgotten"));
    assert_eq!(place.run(&ask).stdout, "n\n7\n");
    assert_eq!(place.run(&["memory", "show", &id]).code, 2);
}

#[test]
fn verify_marks_examples_that_no_longer_fit() {
    let place = seeded_dir();
    assert_eq!(place.run(&["memory", "verify", "--db", "shop.db"]).code, 0);
    let other = place.path("shop.db");
    let database = rusqlite::Connection::open(&other).unwrap();
    database.execute_batch("ALTER TABLE customers RENAME TO people").unwrap();
    drop(database);
    let verified = place.run(&["memory", "verify", "--db", "shop.db"]);
    assert_eq!(verified.code, 1, "{}", verified.stderr);
    assert!(verified.stderr.contains("stale: How many customers are there?"), "{}", verified.stderr);
    assert!(verified.stderr.contains("1 match the schema, 1 do not"), "{}", verified.stderr);
    let stale = place.run(&["memory", "list", "--standing", "stale"]);
    assert_eq!(stale.stdout.lines().count(), 1, "{}", stale.stdout);
}

#[test]
fn chat_stores_answers_without_complaints() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM customers"]);
    let chat = ["chat", "--db", "shop.db", "--format", "csv", "--model", &server.model];
    let said = "How many customers are there?\nNo, that is wrong\n/quit\n";
    assert_eq!(place.run_with_stdin(&chat, said.as_bytes()).code, 0);
    assert_eq!(place.run(&["memory", "list"]).stdout, "");
    let said = "How many customers are there?\nHow many customers live here?\n/quit\n";
    place.run_with_stdin(&chat, said.as_bytes());
    let list = place.run(&["memory", "list"]).stdout;
    assert!(list.contains("unverified") && list.contains("auto") && list.lines().count() == 1, "{list}");
    // Another database knows nothing of it.
    assert_eq!(place.run(&["demo", "other.db"]).code, 0);
    assert_eq!(place.run(&["memory", "list", "--db", "other.db"]).stdout, "");
}

#[test]
fn reports_unusable_stores_and_files() {
    let place = TestDir::with_demo();
    place.write_file("broken.db", "this is no database");
    place.write_file("wrong.yaml", "- question: How many?\n");
    place.write_file("notes.txt", "hello");
    place.write_file("dialect.yaml", "- {question: How many, sql: SELECT 1, dialect: klingon}\n");
    for (arguments, said) in [
        (vec!["memory", "list", "--store", "broken.db"], "broken.db"),
        (vec!["memory", "list", "--store", "redis://here"], "redis"),
        (vec!["memory", "seed", "nowhere.yaml"], "nowhere.yaml"),
        (vec!["memory", "seed", "wrong.yaml"], "wrong.yaml"),
        (vec!["memory", "seed", "notes.txt"], "notes.txt"),
        (vec!["memory", "seed", "dialect.yaml"], "klingon"),
        (vec!["memory", "show", ""], "no example"),
        (
            vec!["ask", "--db", "shop.db", "--model", "http://127.0.0.1:1/v1#x", "--store", "broken.db", "How many?"],
            "broken.db",
        ),
    ] {
        let ended = place.run(&arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said) && ended.stderr.contains("hint:"), "{arguments:?}: {}", ended.stderr);
    }
    // The user's own memory that is damaged is told of, and the question is answered all the same. In a place of its own: the
    // commands above opened a memory here, and SQLite would heal the damaged file from the log that may still lie beside it.
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT 7 AS n"]);
    std::fs::create_dir_all(place.path("state/querymend")).unwrap();
    place.write_file("state/querymend/memory.db", "this is no database");
    let ended = place.run(&[
        "ask",
        "--db",
        "shop.db",
        "--format",
        "csv",
        "--model",
        &server.model,
        "How many orders are there?",
    ]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "n\n7\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("note: memory is disabled"), "{}", ended.stderr);
    assert_eq!(std::fs::read(place.path("state/querymend/memory.db")).unwrap(), b"this is no database");
}

#[test]
fn seed_without_a_database_accepts_only_reads() {
    let place = TestDir::new();
    let examples = "\
- {question: How many?, sql: SELECT count(*) FROM anything}
- {question: Make room, sql: DELETE FROM products}
- {question: Two at once, sql: SELECT 1; SELECT 2}
- {question: Half a query, sql: SELECT FROM WHERE}
- {question: As text, sql: 'SELECT now()::text', dialect: postgres}
";
    place.write_file("examples.yaml", examples);
    let ended = place.run(&["memory", "seed", "examples.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let note = "note: no database was given, so queries were not checked against a schema\n";
    assert!(ended.stderr.starts_with(note), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("2 imported, 0 already stored, 3 rejected\n"), "{}", ended.stderr);
    let refused = "not imported, its query cannot be run: ";
    let delete = "Make room (DELETE is not allowed: only read-only queries (SELECT) are run)";
    assert!(ended.stderr.contains(&format!("{refused}{delete}\n")), "{}", ended.stderr);
    for question in ["Two at once (", "Half a query ("] {
        assert!(ended.stderr.contains(&format!("{refused}{question}")), "{}", ended.stderr);
    }
    let list = place.run(&["memory", "list"]).stdout;
    assert!(list.contains("How many?") && list.contains("As text") && list.lines().count() == 2, "{list}");
}

#[test]
fn seed_accepts_only_reads_of_other_databases() {
    let place = TestDir::with_demo();
    let examples = "\
- {question: How many?, sql: SELECT count(*) FROM elsewhere, database: other}
- {question: Make room, sql: DELETE FROM products, database: other}
- {question: How many products?, sql: SELECT count(*) FROM products}
";
    place.write_file("examples.yaml", examples);
    let ended = place.run(&["memory", "seed", "examples.yaml", "--db", "shop.db"]);
    let note = "note: 2 queries belong to other databases and were not checked against a schema\n";
    assert!(ended.stderr.starts_with(note), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("2 imported, 0 already stored, 1 rejected\n"), "{}", ended.stderr);
}

#[test]
fn finds_the_database_in_environment_or_configuration() {
    let place = TestDir::with_demo();
    assert_eq!(place.run(&["demo", "other.db"]).code, 0);
    place.write_file("examples.yaml", EXAMPLES);
    let seeded = place.run_with_database("shop.db", &["memory", "seed", "examples.yaml"]);
    assert!(seeded.stderr.contains("2 imported, 0 already stored, 1 rejected"), "{}", seeded.stderr);
    assert!(!seeded.stderr.contains("no database was given"), "{}", seeded.stderr);
    let count = |database: &str, what: &str| {
        place.run_with_database(database, &["memory", what]).stdout.matches("customers").count()
    };
    for what in ["list", "export"] {
        assert!(count("shop.db", what) > 0, "{what}");
        assert_eq!(count("other.db", what), 0, "{what}");
    }
    let list = || place.run(&["memory", "list"]);
    assert_eq!(list().stdout.lines().count(), 2);
    place.write_file("querymend.yaml", "database: other.db\n");
    let ended = list();
    assert!(ended.stdout.is_empty() && ended.stderr.starts_with("0 examples of "), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.ends_with("other.db\n"), "{}", ended.stderr);
    // Its parts name a server, on a port where nobody listens.
    let server =
        ["--dialect", "mysql", "--db-host", "127.0.0.1", "--db-port", "1", "--db-user", "me", "--db-name", "shop"];
    let ended = place.run(&[&["memory", "seed", "examples.yaml"], &server[..]].concat());
    assert!(ended.code == 2 && ended.stderr.contains("there is no MySQL server at 127.0.0.1:1"), "{}", ended.stderr);
    let ended = place.run(&[&["memory", "list"], &server[..]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{}", ended.stderr);
}

#[test]
fn pluralizes_use_counts() {
    let place = seeded_dir();
    let server = ScriptedModelServer::with_replies(&["SELECT name FROM products WHERE price > 50"]);
    let question = "Which products cost more than 50?";
    let asked = place.run(&["ask", "--db", "shop.db", "--model", &server.model, question]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let id = first_id(&place, "Which products cost more than 100?");
    let show = place.run(&["memory", "show", &id]).stdout;
    assert!(show.contains("shown: 1 time; "), "{show}");
    assert_eq!(place.run(&["memory", "stats"]).stdout.matches(" times; ").count(), 1);
}
