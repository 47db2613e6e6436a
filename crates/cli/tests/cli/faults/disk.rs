//! A disk that is full, has almost no room, or cannot be written: a small one of its own, in a namespace where it may be mounted.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use querymend_testing::is_full_suite;
use serde_json::{Value, json};

use crate::TestDir;
use crate::audit::{HttpOutcome, post, wait_for_address};
use crate::server::ScriptedModelServer;

/// So many kilobytes are left when a command begins. Pages have four.
const FREE_KILOBYTES: [usize; 9] = [0, 4, 8, 16, 32, 64, 128, 256, 512];
/// How many examples are taken in.
const EXAMPLES: usize = 40;

/// What every script begins with: a disk of eight megabytes with what lies in `seed`, and the words that scripts are made of.
/// What a command says is kept beside the disk, and not on it.
const SCRIPT_PRELUDE: &str = r#"
mount -t tmpfs -o size=8m none disk || exit 77
cp -r seed/. disk
export XDG_STATE_HOME=$PWD/disk/state XDG_CONFIG_HOME=$PWD/disk/config QUERYMEND_CACHE=$PWD/disk/cache
cd disk
room() { rm -f filler; dd if=/dev/zero of=filler bs=1k count=$(($(df -k --output=avail . | tail -1) - $1)) 2> /dev/null; }
more_room() { rm -f filler; }
q() { name=$1; shift; "$QUERYMEND" "$@" > "../$name.out" 2> "../$name.err" < /dev/null; echo $? > "../$name.code"; }
"#;

/// A script on a disk of its own. None where this machine allows nobody to mount one.
#[allow(clippy::print_stderr, reason = "a test that was skipped says so")]
fn script(place: &TestDir, model: &str, text: &str) -> Option<Command> {
    let allowed = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !allowed.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: no disk can be mounted here (unshare -rm)");
        return None;
    }
    std::fs::create_dir_all(place.path("disk")).unwrap();
    // Only for what it has set: the surroundings.
    let binary = place.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &format!("{SCRIPT_PRELUDE}{text}")]).current_dir(place.folder.path());
    for (name, value) in binary.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("QUERYMEND", binary.get_program()).env("MODEL", model);
    Some(command)
}

struct ScriptOutput {
    code: i32,
    out: String,
    err: String,
}

fn read_output(place: &TestDir, name: &str) -> ScriptOutput {
    let read = |ending: &str| std::fs::read_to_string(place.path(&format!("{name}.{ending}"))).unwrap();
    let said = ScriptOutput { code: read("code").trim().parse().unwrap(), out: read("out"), err: read("err") };
    assert!(!said.err.contains("panicked"), "{name}: {}", said.err);
    said
}

/// With a database, examples and a set of questions, and a model that is right.
fn prepare_dir() -> (TestDir, ScriptedModelServer) {
    let place = TestDir::with_demo();
    std::fs::create_dir(place.path("seed")).unwrap();
    std::fs::rename(place.path("shop.db"), place.path("seed/shop.db")).unwrap();
    let example = |n| {
        format!(
            "- {{question: How many orders have more than {n} things in them?, sql: SELECT count(*) FROM order_items WHERE quantity > {n}}}\n"
        )
    };
    place.write_file("seed/examples.yaml", (0..EXAMPLES).map(example).collect::<String>());
    let case = |id: &str| {
        format!(
            "- {{id: {id}, kind: first_try, question: How many orders are there?, gold: SELECT count(*) FROM orders}}\n"
        )
    };
    let set = format!("name: two\ndatabase: demo\ncases:\n{}{}", case("one"), case("two"));
    place.write_file("seed/set.yaml", set);
    (place, ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM orders"]))
}

/// What is done on a disk in trouble, and what is looked at when it is well again.
const WORK: &str = r#"
TROUBLE; q ask ask --db shop.db --model "$MODEL" --format csv 'How many orders are there?'
TROUBLE; q seed memory seed examples.yaml --db shop.db
TROUBLE; q demo demo other.db
TROUBLE; q key key new reports --keys keys.jsonl
TROUBLE; q eval eval run set.yaml --model "$MODEL" --out results
WELL
ls -R . > ../listing
cp other.db ../other.db 2> /dev/null
cp results/results.jsonl .. 2> /dev/null
q traces trace --format json
q list memory list --limit 1000 --format json
q keys key list --keys keys.jsonl --format json
q again memory seed examples.yaml --db shop.db
q all memory list --limit 1000 --format json
q eval_again eval run set.yaml --model "$MODEL" --out results
q shown eval show results/results.jsonl --format json
"#;

fn check(place: &TestDir, what: &str) {
    let list = |said: &ScriptOutput| {
        serde_json::from_str::<Value>(&said.out).unwrap_or_else(|why| panic!("{what}: {why}: {}", said.err))
    };
    let helps = |said: &ScriptOutput, name: &str| {
        assert!(
            said.code == 2 && said.err.contains("error: ") && said.err.contains("hint: "),
            "{what} {name}: {} {}",
            said.code,
            said.err
        );
    };
    // The answer is there whatever becomes of the books; what is not kept is said not to be.
    let ask = read_output(place, "ask");
    assert_eq!((ask.code, ask.out.as_str()), (0, "n\n180\n"), "{what}: {}", ask.err);
    let lost = ask.err.contains("the run cannot be saved");
    let runs = list(&read_output(place, "traces"));
    assert_eq!(runs.as_array().unwrap().len(), usize::from(!lost), "{what}: {runs}");
    assert!(lost || runs[0]["outcome"] == "answered" || runs[0].to_string().contains("answered"), "{what}: {runs}");
    let listing = std::fs::read_to_string(place.path("listing")).unwrap();
    assert!(!listing.contains(".part"), "{what}: {listing}");
    // All examples were taken in, or none, and none is half.
    let (seed, kept) = (read_output(place, "seed"), list(&read_output(place, "list")));
    let kept = kept.as_array().unwrap();
    if seed.code == 0 {
        assert_eq!(kept.len(), EXAMPLES, "{what}: {}", seed.err);
    } else {
        helps(&seed, "seed");
        assert!(kept.is_empty(), "{what}: {} of {EXAMPLES} are kept", kept.len());
    }
    assert_eq!(read_output(place, "again").code, 0, "{what}");
    assert_eq!(list(&read_output(place, "all")).as_array().unwrap().len(), EXAMPLES, "{what}");
    // A database that is there is whole.
    let demo = read_output(place, "demo");
    if demo.code == 0 {
        let rows =
            place.run(&["run", "--db", "other.db", "--sql", "SELECT count(*) AS n FROM orders", "--format", "csv"]);
        assert_eq!(rows.stdout, "n\n180\n", "{what}: {}", rows.stderr);
    } else {
        helps(&demo, "demo");
        assert!(!place.path("other.db").exists(), "{what}: something is left that looks like a database");
    }
    // A key that was shown is valid; one that could not be kept was not shown.
    let (key, keys) = (read_output(place, "key"), read_output(place, "keys"));
    let valid = if keys.code == 0 { list(&keys).as_array().unwrap().len() } else { 0 };
    if key.code == 0 {
        assert_eq!(valid, 1, "{what}");
    } else {
        helps(&key, "key");
        assert!(valid == 0 && key.out.is_empty(), "{what}: {}", key.out);
    }
    // An evaluation that could not be written down did not succeed, and is taken up again.
    let eval = read_output(place, "eval");
    if eval.code != 0 {
        helps(&eval, "eval");
    } else {
        assert_eq!(std::fs::read_to_string(place.path("results.jsonl")).unwrap().lines().count(), 3, "{what}");
    }
    assert_eq!(read_output(place, "eval_again").code, 0, "{what}: {}", read_output(place, "eval_again").err);
    assert_eq!(list(&read_output(place, "shown"))["metrics"]["total"], 2, "{what}");
    for name in ["other.db", "results.jsonl"] {
        std::fs::remove_file(place.path(name)).ok();
    }
}

#[test]
fn full_disk_loses_no_answer_and_leaves_no_partial_file() {
    let (place, model) = prepare_dir();
    // At least no room, room for a part of it and room for all of it.
    for room in FREE_KILOBYTES.into_iter().step_by(if is_full_suite() { 1 } else { 4 }) {
        let text = WORK.replace("TROUBLE", &format!("room {room}")).replace("WELL", "more_room");
        let Some(mut command) = script(&place, &model.model, &text) else { return };
        assert!(command.status().unwrap().success());
        check(&place, &format!("with {room} kB of room"));
    }
}

#[test]
fn read_only_disk_loses_no_answer_and_no_file() {
    let (place, model) = prepare_dir();
    let text = WORK.replace("TROUBLE", "mount -o remount,ro .").replace("WELL", "mount -o remount,rw .");
    let Some(mut command) = script(&place, &model.model, &text) else { return };
    assert!(command.status().unwrap().success());
    for name in ["seed", "demo", "key", "eval"] {
        assert_eq!(read_output(&place, name).code, 2, "{name}");
    }
    check(&place, "read-only");
}

#[test]
fn unwritable_output_is_an_error() {
    let place = TestDir::with_demo();
    for arguments in [
        vec!["run", "--db", "shop.db", "--sql", "SELECT name FROM products"],
        vec!["schema", "--db", "shop.db"],
        vec!["check", "--db", "shop.db", "--sql", "SELECT nmae FROM products", "--format", "json"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(&arguments).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains("error: "), "{err}");
    }
}

#[test]
fn server_without_room_for_its_audit_log_rejects_requests() {
    let (place, model) = prepare_dir();
    let config = "providers: providers.toml\nmodels: models.toml\nserver: {limits: {requests_per_minute: 0}}\nmemory: {enabled: false}\n";
    place.write_file("seed/querymend.yaml", config);
    place.write_file("seed/providers.toml", "");
    place.write_file("seed/models.toml", "");
    let text = r#"
"$QUERYMEND" serve --db shop.db --bind 127.0.0.1:0 --audit audit.jsonl --model "$MODEL" > /dev/null < /dev/null &
while read -r word; do
  case $word in full) room 0 ;; free) more_room ;; end) kill $!; wait $!; echo $? > ../serve.code; cp audit.jsonl ..; echo done; exit ;; esac
  echo done
done
"#;
    let Some(mut command) = script(&place, &model.model, text) else { return };
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let (mut tell, mut hear) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let address = wait_for_address(&mut child);
    let mut tell = |word: &str| {
        writeln!(tell, "{word}").unwrap();
        hear.read_line(&mut String::new()).unwrap();
    };
    let (mut answered, mut number) = (Vec::new(), 0);
    let mut ask = |path: &str| {
        number += 1;
        let id = format!("r{number}");
        let body = if path == "/v1/run" {
            json!({"sql": "SELECT count(*) AS n FROM orders"})
        } else {
            json!({"question": "How many orders are there?"})
        };
        match post(&address, path, &id, &body) {
            HttpOutcome::Complete(200, body) => {
                assert!(body.contains("180"), "{body}");
                answered.push(id);
                true
            }
            HttpOutcome::Complete(500, body) => {
                assert!(body.contains("the audit log cannot be written"), "{body}");
                assert!(!body.contains("180"), "what was not written down is not told: {body}");
                false
            }
            other => panic!("{other:?}"),
        }
    };
    for round in 0..3 {
        assert!(ask("/v1/run") && ask("/v1/ask"), "round {round}");
        tell("full");
        // There may be room in the last page of the file.
        let refused = (0..100).find(|_| !ask("/v1/run"));
        assert!(refused.is_some(), "a disk without room took a hundred lines");
        assert!(!ask("/v1/ask") && !ask("/v1/run"));
        tell("free");
        assert!(ask("/v1/run") && ask("/v1/ask"), "round {round}");
    }
    tell("end");
    drop(child.wait());
    assert_eq!(std::fs::read_to_string(place.path("serve.code")).unwrap().trim(), "0");
    let log = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for id in answered {
        assert!(lines.iter().any(|line| line["request_id"] == id.as_str()), "{id} was answered, and is not in the log");
    }
}
