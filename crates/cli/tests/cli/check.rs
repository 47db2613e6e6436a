use serde_json::Value;

use crate::{CommandOutput, TestDir};

const BROKEN: &str =
    "SELECT id, 'Ünï → 日本', p.names\nFROM products p\nWHERE p.product_id IN (SELECT product_id FROM oders)";

#[test]
fn shows_findings_under_the_sql() {
    let place = TestDir::with_schema();
    place.write_file("q.sql", BROKEN);
    let ended = place.run(&["check", "q.sql", "--schema", "schema.sql"]);
    assert_eq!(
        ended.stdout,
        "\
error[unknown-column]: `p` has no column `id` (did you mean `product_id`?)
 --> q.sql:1:8
  |
1 | SELECT id, 'Ünï → 日本', p.names
  |        ^^
  |
  = help: write `product_id`

error[unknown-column]: `p` has no column `names` (did you mean `name`?)
 --> q.sql:1:24
  |
1 | SELECT id, 'Ünï → 日本', p.names
  |                          ^^^^^^^
  |
  = help: write `p.name`

error[unknown-table]: there is no table `oders` (did you mean `orders`?)
 --> q.sql:3:47
  |
3 | WHERE p.product_id IN (SELECT product_id FROM oders)
  |                                               ^^^^^
  |
  = help: write `orders`
"
    );
    assert_eq!(
        ended.stderr,
        "read-only, but it would fail: 3 errors\n\
         hint: `querymend explain unknown-column` explains it; it can be fixed with `querymend fix`\n"
    );
    assert_eq!(ended.code, 1);
}

#[test]
fn rejects_writes() {
    let ended = TestDir::new().run_with_stdin(&["check"], b"DELETE FROM\r\n  products\r\nWHERE 1");
    assert_eq!(
        ended.stdout,
        "\
error[writes-data]: DELETE is not allowed: only read-only queries (SELECT) are run
 --> <stdin>:1:1
  |
1 | DELETE FROM
  | ^^^^^^
  |
  = help: DELETE is refused. Write one SELECT that only reads.
"
    );
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("refused: 1 error"), "{}", ended.stderr);
}

#[test]
fn accepts_keywords_in_names_and_literals() {
    let ended = TestDir::new().run(&["check", "-q", "--sql", "SELECT update_time FROM t WHERE note = 'DROP TABLE t'"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
}

#[test]
fn comments_follow_the_policy() {
    let place = TestDir::new();
    place.write_file("strict.yaml", "comments: reject\n");
    place.write_file("strict.json", r#"{"comments": "reject"}"#);
    let sql = "SELECT 1 -- one";
    assert_eq!(place.run(&["check", "--sql", sql]).code, 0);
    for policy in ["strict.yaml", "strict.json"] {
        let ended = place.run(&["check", "--sql", sql, "--policy", policy]);
        assert_eq!(ended.code, 1, "{policy}");
        assert!(ended.stdout.starts_with("error[comments]"), "{}", ended.stdout);
    }
}

#[test]
fn reads_only_allowed_tables() {
    let place = TestDir::with_schema();
    place.write_file("house.yaml", "allow_tables:\n  - products\n");
    let check = |sql| place.run(&["check", "--schema", "schema.sql", "--policy", "house.yaml", "--sql", sql]).code;
    assert_eq!(check("SELECT name FROM products"), 0);
    assert_eq!(check("SELECT quantity FROM orders"), 1);
}

#[test]
fn explain_prints_the_extracted_names() {
    let place = TestDir::with_schema();
    place.write_file("house.yaml", "allow_tables: [products, orders]");
    let sql = "WITH big AS (SELECT * FROM orders o WHERE o.quantity > 9)\nSELECT count(*) FROM big";
    let ended = place.run(&["check", "--explain", "--schema", "schema.sql", "--policy", "house.yaml", "--sql", sql]);
    assert_eq!(
        ended.stdout,
        "\
tables: orders
CTEs: big
aliases: o = orders, big = (subquery)
allowed tables: products, orders
SQL:
  WITH big AS (SELECT * FROM orders o WHERE o.quantity > 9)
  SELECT count(*) FROM big
"
    );
    assert_eq!(ended.code, 0);
    // -v logs the same of a query that is not approved, but not among the findings.
    let ended = place.run(&["check", "-v", "--schema", "schema.sql", "--sql", "SELECT nme FROM products p"]);
    assert!(ended.stderr.contains("aliases: p = products\n"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("aliases"), "{}", ended.stdout);
}

#[test]
fn explain_names_tables_that_do_not_exist() {
    let place = TestDir::with_schema();
    let sql = "SELECT it.name FROM warehouse it JOIN bar1 ON it.id = bar1.id";
    let ended = place.run(&["check", "--explain", "--schema", "schema.sql", "--sql", sql]);
    let lines = "tables: warehouse, bar1\nunknown tables: warehouse, bar1\nCTEs: none\naliases: it = warehouse\n";
    assert!(ended.stdout.contains(lines), "{}", ended.stdout);
}

#[test]
fn checks_only_the_text_without_a_schema() {
    let place = TestDir::new();
    let ended = place.run_with_stdin(&["check", "-"], b"SELECT anything FROM anywhere");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
    assert_eq!(
        ended.stderr,
        "note: neither --db nor --schema was given, so names of tables and columns are not checked\napproved\n"
    );
    assert_eq!(place.run_with_stdin(&["check", "-q"], b"SELECT FROM WHERE").code, 1);
}

#[test]
fn resolves_names_from_a_database_or_schema_file() {
    let place = TestDir::with_demo();
    let json = place.run(&["schema", "--db", "shop.db", "--format", "json"]).stdout;
    place.write_file("shop.json", json);
    place.write_file("shop.sql", place.run(&["schema", "--db", "shop.db", "--format", "ddl"]).stdout);
    for against in
        [["--db", "shop.db"], ["--db", "sqlite:shop.db"], ["--schema", "shop.json"], ["--schema", "shop.sql"]]
    {
        let check = |sql| place.run(&["check", against[0], against[1], "--sql", sql]).code;
        assert_eq!(check("SELECT \"unitPrice\", `discount (%)` FROM order_items"), 0, "{against:?}");
        assert_eq!(check("SELECT unit_price FROM order_items"), 1, "{against:?}");
    }
}

#[test]
fn option_overrides_the_dialect_of_the_database() {
    let place = TestDir::with_demo();
    // PostgreSQL alone knows `::`.
    let sql = "SELECT name::text FROM products";
    let check = |more: &[&str]| place.run(&[&["check", "--db", "shop.db", "--sql", sql], more].concat()).code;
    assert_eq!((check(&[]), check(&["--dialect", "pg"])), (1, 0));
}

#[test]
fn json_has_positions_and_suggestions() {
    let place = TestDir::with_schema();
    place.write_file("q.sql", BROKEN);
    let ended = place.run(&["check", "q.sql", "--schema", "schema.sql", "--format", "json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &report["verdict"], &report["clean"]), (1, &"approved".into(), &false.into()));
    assert_eq!(report["dialect"], "sqlite");
    let found = &report["findings"][1];
    assert_eq!(
        (&found["code"], &found["severity"], &found["suggestion"]),
        (&"unknown-column".into(), &"error".into(), &"p.name".into())
    );
    let start = BROKEN.find("p.names").unwrap();
    assert_eq!(found["span"], serde_json::json!({ "start": start, "end": start + 7 }));
    assert_eq!([&found["line"], &found["column"], &found["end_line"], &found["end_column"]], [1, 24, 1, 31]);
    assert_eq!(report["extracted"]["aliases"][0], serde_json::json!(["p", "products"]));
}

#[test]
fn sarif_has_the_required_fields() {
    let place = TestDir::with_schema();
    place.write_file("my query.sql", format!("```sql\n{BROKEN}\n```"));
    let ended = place.run(&["check", "my query.sql", "--schema", "schema.sql", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &log["version"]), (1, &"2.1.0".into()));
    assert!(log["$schema"].as_str().unwrap().contains("sarif-2.1.0"));
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "querymend");
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(rules[index]["shortDescription"]["text"].is_string());
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20query.sql");
        for field in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(place["region"][field].as_u64().unwrap() >= 1, "{field}");
        }
    }
    let fence = &results[0];
    assert_eq!((&fence["ruleId"], &fence["level"]), (&"code-fence".into(), &"note".into()));
    let replacement = &fence["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(
        (&replacement["deletedRegion"]["startLine"], &replacement["insertedContent"]["text"]),
        (&1.into(), &"".into())
    );
    let column = results.iter().find(|r| r["properties"]["suggestion"] == "p.name").unwrap();
    assert_eq!(column["locations"][0]["physicalLocation"]["region"]["startColumn"], 24);
}

#[test]
fn colors_output_only_on_request() {
    let place = TestDir::new();
    let check = |more: &[&str]| place.run(&[&["check", "--sql", "DROP TABLE t"], more].concat()).stdout;
    let plain = check(&[]);
    assert!(!plain.contains('\u{1b}'));
    let coloured = check(&["--color", "always"]);
    assert!(coloured.contains("\u{1b}["));
    // Colour carries no meaning: without it the same words are there.
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn reads_only_values_that_the_configuration_allows() {
    let place = TestDir::with_demo();
    let wrong = "SELECT name FROM products WHERE category = 'electronics'";
    let line = format!("{}\n", serde_json::json!({ "sql": wrong, "db": "shop.db" }));
    for (settings, told) in [
        ("", true),
        ("values: {exclude: [customers.city]}\n", true),
        ("values: {enabled: false}\n", false),
        ("values: {exclude: [category]}\n", false),
        ("values: {exclude: [products.*]}\n", false),
    ] {
        place.write_file("querymend.yaml", settings);
        let checked = place.run(&["check", "--db", "shop.db", "--sql", wrong]);
        assert_eq!(checked.code, 0, "{settings}: {}", checked.stderr);
        assert_eq!(checked.stdout.contains("did you mean 'Electronics'?"), told, "{settings}: {}", checked.stdout);
        let mended = place.run(&["fix", "--db", "shop.db", "--sql", wrong]);
        assert_eq!(mended.stdout.contains("'Electronics'"), told, "{settings}: {}", mended.stdout);
        assert_eq!(mended.stderr.contains("Electronics"), told, "{settings}: {}", mended.stderr);
        let checked = place.run_with_stdin(&["check", "--batch", "-"], line.as_bytes());
        assert_eq!(checked.stdout.contains("Electronics"), told, "{settings}: {}", checked.stdout);
        let mended = place.run_with_stdin(&["fix", "--batch", "-"], line.as_bytes());
        assert_eq!(mended.stdout.contains("Electronics"), told, "{settings}: {}", mended.stdout);
    }
}

#[test]
fn finds_the_database_in_environment_or_configuration() {
    let place = TestDir::with_demo();
    let wrong = "SELECT unit_price FROM order_items";
    let right = "SELECT count(*) AS n FROM customers";
    let known = |run: &dyn Fn(&[&str]) -> CommandOutput, why: &str| {
        let ended = run(&["check", "--sql", wrong]);
        assert!(ended.code == 1 && ended.stdout.contains("unknown-column"), "{why}: {}{}", ended.stdout, ended.stderr);
        assert!(run(&["fix", "--sql", wrong]).stdout.contains("unitPrice"), "{why}");
        assert!(run(&["schema", "reviews"]).stdout.starts_with("reviews\n"), "{why}");
        let ended = run(&["run", "--format", "csv", "--sql", right]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "n\n60\n"), "{why}: {}", ended.stderr);
    };
    known(&|arguments| place.run_with_database("shop.db", arguments), "in the environment");
    place.write_file("querymend.yaml", "database: shop.db\n");
    known(&|arguments| place.run(arguments), "in the configuration");
    // An option comes before the environment, and that before the configuration.
    place.write_file("querymend.yaml", "database: nowhere.db\n");
    known(&|arguments| place.run_with_database("shop.db", arguments), "in the environment before the configuration");
    known(&|arguments| place.run_with_database("gone.db", &[arguments, &["--db", "shop.db"]].concat()), "by an option");
    assert!(place.run(&["check", "--sql", right]).stderr.contains("there is no file `nowhere.db`"));
}

#[test]
fn schema_files_and_batches_need_no_database() {
    let place = TestDir::with_schema();
    assert_eq!(place.run(&["demo", "shop.db"]).code, 0);
    let check = |more: &[&str]| place.run_with_database("gone.db", &[&["check"], more].concat());
    let ended = check(&["--schema", "schema.sql", "--sql", "SELECT name FROM products"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, "approved\n"));
    place.write_file(
        "lines.jsonl",
        "{\"sql\": \"SELECT name FROM products\", \"db\": \"shop.db\"}\n{\"sql\": \"SELECT 1\"}\n",
    );
    let ended = check(&["--batch", "lines.jsonl"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, "2 approved, 0 refused\n"));
}

#[test]
fn accepts_server_parts_in_every_command() {
    let place = TestDir::new();
    // A port on which nobody listens.
    let server = ["--db-host", "127.0.0.1", "--db-port", "1", "--db-user", "me"];
    for command in
        [&["check", "--sql", "SELECT 1"][..], &["fix", "--sql", "SELECT 1"], &["run", "--sql", "SELECT 1"], &["schema"]]
    {
        let said = |more: &[&str]| {
            let ended = place.run(&[command, &server[..], more].concat());
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{command:?}: {}", ended.stderr);
            ended.stderr
        };
        let stderr = said(&["--dialect", "presto", "--catalog", "hive", "--db-schema", "my shop"]);
        assert!(stderr.contains("presto://me@127.0.0.1:1/hive/my shop cannot be reached"), "{command:?}: {stderr}");
        assert!(said(&["--dialect", "sqlite"]).contains("SQLite has no server"), "{command:?}");
        assert!(said(&[]).contains("--dialect"), "{command:?}");
        let help = place.help(command[0]);
        assert!(help.contains("[env: QUERYMEND_DB]"), "{help}");
    }
    let ended = place.run(&["run", "--sql", "SELECT 1"]);
    assert!(ended.code == 2 && ended.stderr.contains("no database is configured"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: name one with --db, in the variable QUERYMEND_DB"), "{}", ended.stderr);
}

#[test]
fn suggests_fix_only_for_fixable_findings() {
    let place = TestDir::with_schema();
    let hint = |sql: &str, more: &[&str]| {
        let ended = place.run(&[&["check", "--sql", sql], more].concat());
        ended.stderr.lines().last().unwrap().to_string()
    };
    let schema = ["--schema", "schema.sql"];
    let mend = "explains it; it can be fixed with `querymend fix`";
    assert_eq!(hint("SELECT nme FROM products", &schema), format!("hint: `querymend explain unknown-column` {mend}"));
    for sql in ["DELETE FROM products", "SELECT zzz_qqq FROM products", "DELETE FROM prodcts"] {
        assert!(hint(sql, &schema).ends_with(" explains it"), "{sql}");
    }
    // Without tables `fix` mends nothing.
    assert!(hint("SELECT name, FROM products", &[]).ends_with(" explains it"));
}
