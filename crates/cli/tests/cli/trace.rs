use crate::TestDir;
use crate::server::ScriptedModelServer;

const QUESTION: &str = "Show the id and the price of every product in the category Electronics.";

fn ask_question(place: &TestDir, question: &str) {
    let server = ScriptedModelServer::with_replies(&["SELECT id, price FROM products WHERE category = 'Electronics'"]);
    let ended = place.run(&["ask", "--db", "shop.db", "--model", &server.model, question]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn trace_shows_attempts_that_the_answer_hides() {
    let place = TestDir::with_demo();
    let ended = place.run(&["trace"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", "0 runs\n"));
    let ended = place.run(&["trace", "last"]);
    assert_eq!((ended.code, ended.stderr.lines().next()), (2, Some("error: there are no saved runs")));
    ask_question(&place, QUESTION);
    ask_question(&place, "Which electronics are there?");

    let listed = place.run(&["trace"]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with("Which electronics are there?") && lines[1].ends_with(QUESTION), "{lines:?}");
    let first = lines[1].split(' ').next().unwrap();
    let told = place.run(&["trace", first]);
    for words in [QUESTION, "attempt 1\n", "'id' → 'product_id'", "error[unknown-column]", "ended: answered"] {
        assert!(told.stdout.contains(words), "{words} in {}", told.stdout);
    }
    assert!(place.run(&["trace", "last"]).stdout.contains("Which electronics are there?"));
    let events = place.run(&["trace", first, "--format", "json"]).json();
    assert_eq!((&events[0]["event"], &events[0]["question"]), (&"started".into(), &QUESTION.into()));
    assert_eq!(place.run(&["trace", "--format", "json"]).json()[1]["id"], first);
    let ended = place.run(&["trace", "ffff"]);
    assert_eq!((ended.code, ended.stderr.lines().next()), (2, Some("error: there is no saved run `ffff`")));
    assert!(ended.stderr.contains("hint: `querymend trace` lists"));
}

#[test]
fn configuration_sets_trace_count_and_folder() {
    let place = TestDir::with_demo();
    place.write_file("querymend.yaml", "trace: {max_traces: 1, folder: here}\n");
    ask_question(&place, QUESTION);
    ask_question(&place, QUESTION);
    assert_eq!(std::fs::read_dir(place.path("here")).unwrap().count(), 1);
    assert!(!place.path("state").exists());
    place.write_file("querymend.yaml", "trace: {max_traces: 0}\n");
    ask_question(&place, QUESTION);
    assert!(!place.path("state").exists());
}

#[test]
fn list_shows_time_and_outcome_of_each_run() {
    let place = TestDir::with_demo();
    ask_question(&place, QUESTION);
    let server = ScriptedModelServer::with_replies(&["SELECT flavour FROM products"]);
    let ended = place.run(&[
        "ask",
        "--db",
        "shop.db",
        "--no-fallback",
        "--model",
        &server.model,
        "Which products have a flavour?",
    ]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    // A run whose time is known: the example of RFC 9562.
    let run = |id: &str| place.path("state/querymend/runs").join(format!("{id}.jsonl"));
    let old = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    std::fs::write(run(old), "{\"event\": \"started\", \"question\": \"How many?\"}\n").unwrap();
    let listed = place.run(&["trace"]);
    assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.stdout);
    let known = format!("{old}  2022-02-22T19:22:22Z  interrupted          How many?");
    assert_eq!(listed.stdout.lines().last(), Some(known.as_str()));
    assert!(
        listed.stdout.contains("Z  gave up              Which products have") && !listed.stdout.contains("gave_up"),
        "{}",
        listed.stdout
    );
    assert!(listed.stdout.contains("Z  answered             Show the id"), "{}", listed.stdout);
    // Programs are told the words of the protocol.
    let json = place.run(&["trace", "--format", "json"]).json();
    assert_eq!((&json[0]["status"], &json[2]["began"]), (&"gave_up".into(), &"2022-02-22T19:22:22Z".into()), "{json}");
    let told = place.run(&["trace", "last"]).stdout;
    assert!(told.contains("\nended: gave up (") && !told.contains("gave_up"), "{told}");
    let one = place.run(&["trace", json[1]["id"].as_str().unwrap()]).stdout;
    assert!(one.contains("took: 1 call to the model"), "{one}");
}
