use serde_json::Value;

use crate::{SCHEMA, TestDir};

#[test]
fn demo_writes_a_database_and_its_commands_work() {
    let place = TestDir::new();
    let ended = place.run(&["demo"]);
    assert_eq!(ended.code, 0);
    let commands: Vec<&str> = ended.stdout.lines().filter_map(|line| line.trim().strip_prefix("querymend ")).collect();
    assert_eq!(commands.len(), 5);
    assert_eq!(commands[0], "check --db querymend-demo.db broken.sql");
    for (command, code) in commands.iter().zip([1, 1, 0, 0, 0]) {
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
        "error: `querymend-demo.db` already exists\nhint: choose another name, or delete it first\n"
    );
}

#[test]
fn demo_writes_its_query_and_overwrites_no_file() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("in")).unwrap();
    let ended = place.run(&["demo", "in/shop.db"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("wrote in/broken.sql: a query with errors"), "{}", ended.stderr);
    let check = place.run(&["check", "--db", "in/shop.db", "in/broken.sql"]);
    assert_eq!(check.code, 1, "{}", check.stderr);
    assert!(check.stdout.contains("`c` has no column `id` (did you mean `customer_id`?)"), "{}", check.stdout);

    place.write_file("broken.sql", "SELECT 1");
    let ended = place.run(&["demo", "shop.db"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("broken.sql already exists and was not changed"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("shop.db broken.sql"), "{}", ended.stdout);
    assert_eq!(std::fs::read_to_string(place.path("broken.sql")).unwrap(), "SELECT 1");
}

#[test]
fn schema_shows_keys_and_marks_inferred_ones() {
    let place = TestDir::with_demo();
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
fn schema_as_ddl_and_json_round_trips() {
    let place = TestDir::with_schema();
    let text = |file: &str| place.run(&["schema", "--schema", file]).stdout;
    let first = text("schema.sql");
    assert!(first.contains("product_id  INTEGER  -> products.product_id\n"), "{first}");
    for (format, file) in [("ddl", "again.sql"), ("json", "again.json")] {
        place.write_file(file, place.run(&["schema", "--schema", "schema.sql", "--format", format]).stdout);
        assert_eq!(text(file), first, "{format}");
    }
    place
        .write_file("awkward.sql", "CREATE TABLE \"order\" (\"a b\" INT, \"Mixed\" TEXT, UNIQUE (\"a b\", \"Mixed\"))");
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
    let place = TestDir::new();
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
    let ended = TestDir::new().run(&["dialects"]);
    let names: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.iter().eq(querymend_sql::dialect::DIALECTS.iter().map(|dialect| &dialect.name)), "{names:?}");
    assert!(ended.stdout.contains("postgresql"));
    let ended = TestDir::new().run(&["check", "--sql", "SELECT 1", "--dialect", "cobol"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("there is no dialect `cobol`; there are sqlite, postgres"), "{}", ended.stderr);
}

#[test]
fn completions_include_the_commands() {
    let place = TestDir::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.run(&["completions", shell]).stdout;
        assert!(script.contains("querymend") && script.contains("dialects") && script.contains("batch"), "{shell}");
    }
}

/// The commands that `--help` lists, by their names.
fn commands_of(help: &str) -> Vec<String> {
    let listed = help.split_once("Commands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap());
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_string()).filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let place = TestDir::new();
    let ended = place.run(&["man", "--into", "pages/man1"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    // Commands have commands of their own, and these too.
    let (mut expected, mut waiting) = (Vec::new(), vec![Vec::new()]);
    while let Some(command) = waiting.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let help = place.run(&[&words[..], &["--help"]].concat()).stdout;
        waiting.extend(commands_of(&help).into_iter().map(|below| [&command[..], &[below]].concat()));
        expected.push(format!("{}.1", [&["querymend"], &words[..]].concat().join("-")));
    }
    assert!(expected.contains(&"querymend-ask.1".to_string()), "{expected:?}");
    assert!(expected.contains(&"querymend-model-pull.1".to_string()), "{expected:?}");
    let mut written: Vec<String> = std::fs::read_dir(place.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    expected.sort();
    assert_eq!(written, expected);
    let version = env!("CARGO_PKG_VERSION");
    for name in &written {
        let page = std::fs::read_to_string(place.path("pages/man1").join(name)).unwrap();
        let title = name.trim_end_matches(".1");
        let heading = format!(".TH {title} 1  \"querymend {version}\" Querymend\n");
        assert!(page.contains(&heading), "{name}: {page}");
        for section in [".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"] {
            assert!(page.contains(section), "{name}: {page}");
        }
    }
    // What `man` shows has no warning, where there is a `groff` to ask. A warning names its page.
    let pages = written.iter().map(|name| place.path("pages/man1").join(name));
    let asked =
        std::process::Command::new("groff").args(["-Kutf8", "-man", "-Tutf8", "-wmac", "-z"]).args(pages).output();
    if let Ok(told) = asked {
        assert!(told.status.success() && told.stderr.is_empty(), "{}", String::from_utf8_lossy(&told.stderr));
    }
}

#[test]
fn prints_one_manual_page() {
    let place = TestDir::new();
    assert!(place.run(&["man"]).stdout.contains(".TH querymend 1"));
    assert!(place.run(&["man", "check"]).stdout.contains("sarif"));
    assert!(place.run(&["man", "model", "pull"]).stdout.contains(".TH querymend-model-pull 1"));
    for wrong in [&["man", "nothing"][..], &["man", "model", "nothing"], &["man", "check", "--into", "x"]] {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
    place.write_file("taken", "");
    let ended = place.run(&["man", "--into", "taken"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("taken cannot be written"), "{}", ended.stderr);
}

#[test]
fn every_command_has_help_with_examples() {
    let place = TestDir::new();
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
        "man",
    ] {
        assert!(help.contains(&format!("\n  {command}")), "{command}");
        let help = place.run(&[command, "--help"]).stdout;
        let examples = help.split_once("Examples:\n").unwrap().1;
        assert!(examples.matches("querymend ").count() >= 2, "{command}: {examples}");
    }
}
