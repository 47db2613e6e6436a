//! `querymend key`.

use super::TestDir;

#[test]
fn creates_lists_and_revokes_keys() {
    let place = TestDir::new();
    let made = place.run(&["key", "new", "reports", "--role", "analyst", "--keys", "keys.jsonl"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let key = made.stdout.trim();
    assert!(key.starts_with("qm_") && key.len() == 84 && made.stdout.lines().count() == 1, "{}", made.stdout);
    let unchecked = "note: no roles are configured here, so the role `analyst` cannot be checked\n";
    assert_eq!(made.stderr, format!("{unchecked}store it now; it will not be shown again\n"));
    let text = std::fs::read_to_string(place.path("keys.jsonl")).unwrap();
    assert!(text.contains("$argon2id$") && !text.contains(&key[20..]), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("keys.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "only the owner may read it");
    }
    let again = place.run(&["key", "new", "reports", "--keys", "keys.jsonl"]);
    assert_eq!((again.code, again.stdout.as_str()), (2, ""));
    assert!(again.stderr.contains("`reports` already has a key") && again.stderr.contains("hint:"));
    assert_eq!(place.run(&["key", "new", "reports", "--another", "--keys", "keys.jsonl"]).code, 0);
    let list = place.run(&["key", "list", "--keys", "keys.jsonl", "--format", "json"]).json();
    let list = list.as_array().unwrap();
    assert_eq!((list.len(), list[0]["name"].as_str(), list[0]["role"].as_str()), (2, Some("reports"), Some("analyst")));
    assert!(list[0].get("hash").is_none());
    let id = list[0]["id"].as_str().unwrap();
    let gone = place.run(&["key", "revoke", id, "--keys", "keys.jsonl"]);
    assert_eq!((gone.code, gone.stdout), (0, format!("{id}  reports\n")));
    let list = place.run(&["key", "list", "--keys", "keys.jsonl"]);
    assert!(list.stderr.ends_with("1 key\n") && !list.stdout.contains(id), "{}{}", list.stdout, list.stderr);
    assert_eq!(place.run(&["key", "revoke", "reports", "--keys", "keys.jsonl"]).code, 0);
    let none = place.run(&["key", "revoke", "reports", "--keys", "keys.jsonl"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("there is no key `reports`"), "{}", none.stderr);
}

#[test]
fn configuration_defines_key_file_and_roles() {
    let place = TestDir::new();
    let nowhere = place.run(&["key", "list"]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.stderr.contains("--keys"), "{}", nowhere.stderr);
    place
        .write_file("querymend.yaml", "server:\n  auth: {keys_file: keys.jsonl}\n  roles: {analyst: {max_rows: 10}}\n");
    let made = place.run(&["key", "new", "ann", "--role", "analyst"]);
    assert_eq!((made.code, made.stderr.as_str()), (0, "store it now; it will not be shown again\n"));
    let wrong = place.run(&["key", "new", "bob", "--role", "root"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("there is no role `root`") && wrong.stderr.contains("analyst"), "{}", wrong.stderr);
    for name in ["", "a\nb", " ann", &"x".repeat(101)] {
        assert_eq!(place.run(&["key", "new", name]).code, 2, "{name:?}");
    }
    assert_eq!(place.run(&["key", "list", "--format", "json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn list_with_an_invalid_line_exits_with_1() {
    let place = TestDir::new();
    let list = || place.run(&["key", "list", "--keys", "keys.jsonl"]);
    assert_eq!(place.run(&["key", "new", "ann", "--keys", "keys.jsonl"]).code, 0);
    assert_eq!(list().code, 0);
    let good = std::fs::read_to_string(place.path("keys.jsonl")).unwrap();
    place.write_file("keys.jsonl", format!("{good}no key\n"));
    let ended = list();
    assert_eq!((ended.code, ended.stdout.lines().count()), (1, 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("warning: line 2 of keys.jsonl cannot be parsed"), "{}", ended.stderr);
    assert!(ended.stderr.lines().last().unwrap().starts_with("hint: "), "{}", ended.stderr);
}
