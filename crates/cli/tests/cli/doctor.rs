//! `querymend doctor`, and databases that are no SQLite file.

use super::TestDir;
use super::server::ScriptedModelServer;

#[test]
fn checks_a_database() {
    let place = TestDir::with_demo();
    let ended = place.run(&["doctor", "--db", "shop.db"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for line in ["ok       connection", "ok       read-only", "ok       rights", "ok       tables"] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let ended = place.run(&["doctor", "--db", "shop.db", "--format", "json"]);
    let seen: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(seen["dialect"], "sqlite");
    assert!(seen["checks"].as_array().unwrap().iter().all(|check| check["standing"] == "ok"), "{seen}");
    // Looking leaves nothing behind.
    let ended = place.run(&["schema", "--db", "shop.db"]);
    assert!(!ended.stdout.contains("querymend_tries_the_lock"));
}

#[test]
fn reports_failures_with_hints() {
    let place = TestDir::new();
    place.write_file(
        "text.db",
        "this is no database, and long enough to be taken for one by whoever only looks at its size".repeat(9),
    );
    let ended = place.run(&["doctor", "--db", "text.db"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stdout.contains("error    connection") && ended.stdout.contains("hint:"), "{}", ended.stdout);
    for (arguments, said) in [
        (vec!["doctor"], "no database is configured"),
        (vec!["doctor", "--db-host", "here", "--dialect", "sqlite"], "SQLite has no server"),
    ] {
        let ended = place.run(&arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stdout);
        assert!(ended.stderr.contains(said) && ended.stderr.contains("hint:"), "{}", ended.stderr);
    }
}

#[test]
fn reports_missing_and_unreachable_databases_alike() {
    let place = TestDir::with_demo();
    for (more, said) in [
        (&["nowhere.db"][..], "there is no file `nowhere.db`"),
        (&["postgres://me@127.0.0.1:1/shop"], "127.0.0.1:1"),
        (&["oracle://scott:tiger@host/db"], "there is no engine for `oracle://` addresses"),
        (&["shop.db", "--dialect", "mysql"], "is sqlite, not mysql"),
    ] {
        let arguments = [&["doctor", "--db"], more].concat();
        let ended = place.run(&arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (1, ""), "{more:?}");
        assert!(ended.stdout.contains("  error    connection  ") && ended.stdout.contains(said), "{}", ended.stdout);
        assert!(ended.stdout.contains("hint: ") && !ended.stdout.contains("tiger"), "{}", ended.stdout);
        let ended = place.run(&[&arguments[..], &["--format", "json"]].concat());
        let seen = ended.json();
        let check = &seen["checks"][0];
        assert_eq!(
            (ended.code, &check["check"], &check["standing"]),
            (1, &"connection".into(), &"error".into()),
            "{seen}"
        );
        assert!(check["seen"].as_str().unwrap().contains(said), "{seen}");
        assert!(!check["hint"].as_str().unwrap().is_empty() && !ended.stdout.contains("tiger"), "{seen}");
    }
}

#[test]
fn treats_a_folder_of_files_as_a_database() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("sales")).unwrap();
    place.write_file("sales/customers.csv", "customer_id,city\n1,Bonn\n2,Köln\n3,Bonn\n");
    place.write_file(
        "sales/orders.jsonl",
        "{\"id\": 1, \"customer_id\": 2, \"total\": 5.5}\n{\"id\": 2, \"customer_id\": 1, \"total\": 1}\n",
    );
    let sql = "SELECT city, total FROM orders JOIN customers USING (customer_id) ORDER BY total";
    let ended = place.run(&["run", "--db", "sales", "--format", "csv", "--sql", sql]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "city,total\nBonn,1.0\nKöln,5.5\n"), "{}", ended.stderr);
    let ended = place.run(&["schema", "--db", "sales"]);
    assert!(ended.stdout.contains("-> customers.customer_id (inferred)"), "{}", ended.stdout);
    // The column is in a table that is not joined, and the key that was found in the file leads to it.
    let ended = place.run(&["fix", "--db", "sales", "--sql", "SELECT city FROM orders WHERE total > 2"]);
    assert!(ended.stdout.contains("customers"), "{} {}", ended.stdout, ended.stderr);
    let server =
        ScriptedModelServer::with_replies(&["SELECT city FROM customers GROUP BY city ORDER BY count(*) DESC LIMIT 1"]);
    let asked = ["ask", "--db", "sales", "--format", "csv", "--model", &server.model, "Where do most customers live?"];
    let ended = place.run(&asked);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "city\nBonn\n"), "{}", ended.stderr);
    let ended = place.run(&["run", "--db", "sales", "--sql", "DELETE FROM orders"]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
}
