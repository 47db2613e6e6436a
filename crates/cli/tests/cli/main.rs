//! Runs the real command on real files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must fail")]

mod ask;
mod ask_batch;
#[cfg(unix)]
mod audit;
mod bad_input;
mod batch;
mod chat;
mod check;
mod determinism;
mod doctor;
mod eval;
#[cfg(unix)]
mod faults;
mod fix;
mod hostile;
mod key;
mod mcp;
mod memory;
mod model;
mod others;
mod real;
mod run;
mod server;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod terminal;
mod trace;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use querymend_testing::hang_timeout;
use tempfile::TempDir;

const SCHEMA: &str = "\
CREATE TABLE products (product_id INTEGER PRIMARY KEY, name TEXT, category TEXT, price REAL);
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products (product_id), quantity INTEGER);
";

/// A folder of its own for each test; the command runs in it.
struct TestDir {
    folder: TempDir,
}

/// How a command ended.
struct CommandOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl CommandOutput {
    /// The one JSON value on stdout.
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// The JSON values on stdout, one for each line.
    fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl TestDir {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With `schema.sql` in it.
    fn with_schema() -> Self {
        let place = Self::new();
        place.write_file("schema.sql", SCHEMA);
        place
    }

    /// With the demo database in it, as `shop.db`.
    fn with_demo() -> Self {
        let place = Self::new();
        assert_eq!(place.run(&["demo", "shop.db"]).code, 0);
        place
    }

    /// Where no server is looked for, whatever runs on this machine, and with more of a providers' file.
    fn disable_model_discovery(&self, providers: &str) {
        let none = |name: &str| format!("[{name}]\nlook = false\n");
        let others = ["ollama", "llamacpp", "lmstudio", "vllm"].into_iter();
        let others = others.filter(|name| !providers.contains(&format!("[{name}]")));
        self.write_file("providers.toml", others.map(none).collect::<String>() + providers);
        self.write_file("querymend.yaml", "providers: providers.toml\nmodels: models.toml\n");
        if !self.path("models.toml").exists() {
            self.write_file("models.toml", "");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_querymend"));
        command.current_dir(self.folder.path()).args(arguments);
        // Nothing of the user's own settings, and nothing into the user's own folders.
        for name in ["QUERYMEND_MODEL", "QUERYMEND_DB", "QUERYMEND_AUTO_PULL", "HOME"] {
            command.env_remove(name);
        }
        for provider in ["OPENAI", "ANTHROPIC", "GEMINI", "OPENROUTER"] {
            command.env_remove(format!("{provider}_API_KEY")).env_remove(format!("{provider}_API_KEY_FILE"));
        }
        command.env("QUERYMEND_CACHE", self.path("cache"));
        command.env("XDG_CONFIG_HOME", self.path("config")).env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("NO_COLOR").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with_stdin(arguments, b"")
    }

    /// What a command says about itself, without the line breaks that depend on a width.
    fn help(&self, command: &str) -> String {
        self.run(&[command, "--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// With a database in the environment.
    fn run_with_database(&self, database: &str, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command(arguments);
        command.env("QUERYMEND_DB", database);
        Self::run_command(command, b"")
    }

    /// Repeats a command until it ends as expected, or until [`hang_timeout`]: for what the program does only within a short time
    /// limit that nothing configures, which a machine under load may miss.
    #[allow(clippy::print_stderr, reason = "a test that tries again says so")]
    fn run_until(run: impl Fn() -> CommandOutput, is_expected: impl Fn(&CommandOutput) -> bool) -> CommandOutput {
        let begun = Instant::now();
        let mut ended = run();
        while !is_expected(&ended) && begun.elapsed() < hang_timeout() {
            eprintln!("tried again, since it ended with {}: {}{}", ended.code, ended.stdout, ended.stderr);
            ended = run();
        }
        ended
    }

    fn run_with_stdin(&self, arguments: &[&str], stdin: &[u8]) -> CommandOutput {
        Self::run_command(self.command(arguments), stdin)
    }

    fn run_command(mut command: Command, stdin: &[u8]) -> CommandOutput {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        // Written beside, because the command may answer before it has read everything.
        let writer = std::thread::spawn(move || pipe.write_all(&bytes).ok());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let ended = CommandOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        ended
    }
}
