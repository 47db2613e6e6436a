use serde_json::Value;

use crate::{Place, SCHEMA};

#[test]
fn demo_writes_a_shop_and_the_commands_it_names_work() {
    let place = Place::new();
    let ended = place.run(&["demo"]);
    assert_eq!(ended.code, 0);
    let commands: Vec<&str> = ended.stdout.lines().filter_map(|line| line.trim().strip_prefix("querymend ")).collect();
    assert_eq!(commands.len(), 4);
    for (command, code) in commands.iter().zip([1, 0, 0, 0]) {
        // No word of these holds a quote of its own.
        let words: Vec<&str> = command
            .split('"')
            .enumerate()
            .flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
            .collect();
        let ended = place.run(&words);
        assert_eq!(ended.code, code, "{command}: {}", ended.stderr);
        assert!(!ended.stdout.is_empty());
    }
    let again = place.run(&["demo"]);
    assert_eq!((again.code, again.stdout.as_str()), (2, ""));
    assert_eq!(
        again.stderr,
        "error: `querymend-demo.db` is already there\nhint: choose another name, or delete it first\n"
    );
}

#[test]
fn schema_shows_keys_and_marks_inferred_ones() {
    let place = Place::with_demo();
    let ended = place.run(&["schema", "--db", "shop.db", "reviews"]);
    assert_eq!(
        ended.stdout,
        "\
reviews
  review_id    INTEGER  key
  product_id   INTEGER  not null, -> products.product_id (inferred)
  customer_id  INTEGER  not null, -> customers.customer_id
  order        INTEGER  not null, -> orders.order_id
  stars        INTEGER  not null
  comment      TEXT
  written_on   TEXT     not null
"
    );
    let ended = place.run(&["schema", "--db", "shop.db", "custmers"]);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (2, "error: there is no table `custmers`\nhint: did you mean `customers`?\n")
    );
    let ended = place.run(&["schema"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("hint: name a database with --db"), "{}", ended.stderr);
}

#[test]
fn schema_as_ddl_and_json_can_be_read_again() {
    let place = Place::with_schema();
    let text = |file: &str| place.run(&["schema", "--schema", file]).stdout;
    let first = text("schema.sql");
    assert!(first.contains("product_id  INTEGER  -> products.product_id\n"), "{first}");
    for (format, file) in [("ddl", "again.sql"), ("json", "again.json")] {
        place.file(file, place.run(&["schema", "--schema", "schema.sql", "--format", format]).stdout);
        assert_eq!(text(file), first, "{format}");
    }
    place.file("awkward.sql", "CREATE TABLE \"order\" (\"a b\" INT, \"Mixed\" TEXT, UNIQUE (\"a b\", \"Mixed\"))");
    let ddl = place.run(&["schema", "--schema", "awkward.sql", "--dialect", "postgres", "--format", "ddl"]).stdout;
    assert_eq!(ddl, "CREATE TABLE \"order\" (\n  \"a b\" INT,\n  \"Mixed\" TEXT,\n  UNIQUE (\"a b\", \"Mixed\")\n);\n");
    let json: Value =
        serde_json::from_str(&place.run(&["schema", "--schema", "schema.sql", "--format", "json", "orders"]).stdout)
            .unwrap();
    assert_eq!((json["tables"].as_array().unwrap().len(), &json["tables"][0]["name"]), (1, &"orders".into()));
    assert!(SCHEMA.contains("orders"));
}

#[test]
fn explain_lists_rules_by_group_and_shows_pages() {
    let place = Place::new();
    let list = place.run(&["explain", "--format", "text"]).stdout;
    let names = list.split("\n\n").find(|group| group.starts_with("names\n")).unwrap();
    assert!(names.contains("\n  unknown-column ") && !names.contains("writes-data"), "{names}");
    // Piped, it is Markdown.
    let page = place.run(&["explain", "unknown-column"]).stdout;
    assert!(page.starts_with("# unknown-column\n"), "{page}");
    let text = place.run(&["explain", "error[unknown-column]", "--format", "text"]).stdout;
    assert!(text.starts_with("unknown-column\n") && !text.contains("```"), "{text}");
    let ended = place.run(&["explain", "unknown-colum"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_eq!(
        ended.stderr,
        "error: there is no finding `unknown-colum`\nhint: did you mean `unknown-column`? `querymend explain` lists all\n"
    );
}

#[test]
fn dialects_are_listed_with_their_names() {
    let ended = Place::new().run(&["dialects"]);
    let names: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["sqlite", "postgres", "mysql", "trino", "presto", "hive", "spark", "datafusion"]);
    assert!(ended.stdout.contains("postgresql"));
    let ended = Place::new().run(&["check", "--sql", "SELECT 1", "--dialect", "cobol"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("there is no dialect `cobol`; there are sqlite, postgres"), "{}", ended.stderr);
}

#[test]
fn completions_and_manual_know_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.run(&["completions", shell]).stdout;
        assert!(script.contains("querymend") && script.contains("dialects") && script.contains("batch"), "{shell}");
    }
    assert!(place.run(&["man"]).stdout.contains(".TH querymend 1"));
    assert!(place.run(&["man", "check"]).stdout.contains("sarif"));
    assert_eq!(place.run(&["man", "nothing"]).code, 2);
}

#[test]
fn every_command_has_help_with_examples() {
    let place = Place::new();
    let help = place.run(&["--help"]).stdout;
    assert!(help.lines().next().unwrap().starts_with("Querymend answers questions from databases"), "{help}");
    for command in [
        "ask",
        "trace",
        "eval",
        "check",
        "fix",
        "explain",
        "schema",
        "run",
        "model",
        "key",
        "demo",
        "dialects",
        "completions",
    ] {
        assert!(help.contains(&format!("\n  {command}")), "{command}");
        let help = place.run(&[command, "--help"]).stdout;
        let examples = help.split_once("Examples:\n").unwrap().1;
        assert!(examples.matches("querymend ").count() >= 2, "{command}: {examples}");
    }
}
