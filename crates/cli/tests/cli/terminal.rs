//! `querymend chat` at a terminal, as a person sits before it.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use expectrl::process::unix::WaitStatus;
use expectrl::session::OsSession;
use querymend_testing::hang_timeout;

use crate::TestDir;
use crate::server::ScriptedModelServer;

const ENTER: &str = "\r";
const TAB: &str = "\t";
const UP: &str = "\u{1b}[A";
const CTRL_C: &str = "\u{3}";

/// A terminal with the command in it.
struct Terminal {
    session: OsSession,
    /// All that was written to it, and how much of it was looked at.
    raw: Vec<u8>,
    answered: usize,
    shown: usize,
}

impl Terminal {
    fn chat(place: &TestDir, server: &ScriptedModelServer) -> Self {
        let mut command =
            place.command(&["chat", "--db", "shop.db", "--no-memory", "--format", "csv", "--model", &server.model]);
        command.env("TERM", "xterm");
        // All three are the terminal.
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let session = OsSession::spawn(command).unwrap();
        let mut terminal = Self { session, raw: Vec::new(), answered: 0, shown: 0 };
        terminal.wait_for("/help lists the commands");
        terminal.wait_for("? ");
        terminal
    }

    /// Takes what the command wrote. A terminal says where its cursor is when it is asked.
    fn read(&mut self) {
        let mut piece = [0; 4096];
        if let Ok(length @ 1..) = self.session.try_read(&mut piece) {
            self.raw.extend_from_slice(&piece[..length]);
        }
        const WHERE: &[u8] = b"\x1b[6n";
        while let Some(at) = self.raw[self.answered..].windows(WHERE.len()).position(|w| w == WHERE) {
            self.answered += at + WHERE.len();
            self.session.write_all(b"\x1b[1;1R").unwrap();
        }
    }

    /// What can be read on it: the text without what moves the cursor and sets colours.
    fn text(&self) -> String {
        let raw = String::from_utf8_lossy(&self.raw);
        let mut text = String::new();
        let mut characters = raw.chars();
        while let Some(c) = characters.next() {
            match c {
                '\u{1b}' if characters.next() == Some('[') => {
                    characters.by_ref().find(char::is_ascii_alphabetic);
                }
                '\u{1b}' | '\r' => {}
                c => text.push(c),
            }
        }
        text
    }

    /// Waits until something more is written that holds these words.
    fn wait_for(&mut self, words: &str) {
        let began = Instant::now();
        loop {
            self.read();
            let text = self.text();
            if let Some(at) = text.get(self.shown..).and_then(|new| new.find(words)) {
                self.shown += at + words.len();
                return;
            }
            assert!(began.elapsed() < hang_timeout(), "no `{words}` in: {}", &text[self.shown..]);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn press(&mut self, keys: &str) {
        self.session.write_all(keys.as_bytes()).unwrap();
    }

    /// Writes a line and waits for an answer with these words, and for the next prompt.
    fn send_line(&mut self, line: &str, words: &str) {
        self.press(line);
        self.press(ENTER);
        self.wait_for(words);
        self.wait_for("? ");
    }

    fn end(mut self, line: &str) {
        self.press(line);
        self.press(ENTER);
        let began = Instant::now();
        while self.session.get_process().status().is_ok_and(|status| status == WaitStatus::StillAlive) {
            self.read();
            assert!(began.elapsed() < hang_timeout(), "it does not end: {}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn received_requests(server: &ScriptedModelServer) -> Vec<String> {
    server.requests().iter().map(ToString::to_string).collect()
}

#[test]
fn supports_completion_continuation_and_history() {
    let place = TestDir::with_demo();
    let server = ScriptedModelServer::with_replies(&["SELECT id AS n FROM products WHERE product_id = 7"]);
    let mut terminal = Terminal::chat(&place, &server);

    // A table: `order_` may become several names, and `order_it` only one.
    terminal.press("Count the order_it");
    terminal.press(TAB);
    terminal.send_line("please", "7\n");
    assert!(
        received_requests(&server)[0].contains("Count the order_items please"),
        "{}",
        received_requests(&server)[0]
    );

    // A command, and a table behind it.
    terminal.press("/sch");
    terminal.press(TAB);
    terminal.send_line("reviews", "written_on");

    terminal.send_line("/sql", "SELECT product_id AS n FROM products WHERE product_id = 7");
    terminal.send_line("/explain", "changed: 'id' → 'product_id'");
    terminal.send_line("/trace", "changed: 'id' → 'product_id'");
    terminal.send_line("/nonsense", "there is no command `/nonsense`");

    // A line that is not whole is not sent.
    terminal.press("And those \\");
    terminal.press(ENTER);
    terminal.wait_for("… ");
    assert_eq!(server.requests().len(), 1);
    terminal.send_line("of last year", "7\n");
    let second = received_requests(&server)[1].clone();
    assert!(second.contains("And those \\nof last year"), "{second}");
    assert!(second.contains("Count the order_items please"), "it sees the question before: {second}");

    terminal.send_line("/reset", "the conversation was cleared");
    terminal.send_line("/sql", "no question was answered yet");
    // Four lines up stands the question of two lines.
    terminal.press(UP);
    terminal.press(UP);
    terminal.press(UP);
    terminal.send_line("", "7\n");
    let third = received_requests(&server)[2].clone();
    assert!(third.contains("of last year") && !third.contains("order_items please"), "{third}");
    terminal.end("quit");

    // Another chat remembers the lines, and not what was said.
    let mut terminal = Terminal::chat(&place, &server);
    terminal.press(UP);
    terminal.press(UP);
    terminal.send_line("", "7\n");
    let fourth = received_requests(&server)[3].clone();
    assert!(fourth.contains("of last year") && !fourth.contains("order_items please"), "{fourth}");
    terminal.end("/quit");
}

#[test]
fn ctrl_c_stops_a_question_and_keeps_the_session() {
    let place = TestDir::with_demo();
    let hangs = |body: &serde_json::Value| body["messages"].to_string().contains("hang");
    let server = ScriptedModelServer::with_handler(Arc::new(move |_, body| {
        (!hangs(body)).then(|| "SELECT count(*) AS n FROM customers".to_string())
    }));
    let mut terminal = Terminal::chat(&place, &server);
    terminal.send_line("Count the customers", "60\n");
    // In the middle of a line it throws the line away. What is typed before the next prompt is thrown away with it.
    terminal.press("never sent");
    terminal.wait_for("never sent");
    terminal.press(CTRL_C);
    terminal.wait_for("\n");
    terminal.wait_for("? ");
    // While a question is under way it stops that.
    terminal.press("Now hang");
    terminal.press(ENTER);
    let began = Instant::now();
    while server.requests().len() < 2 {
        terminal.read();
        assert!(began.elapsed() < hang_timeout(), "the question is not asked: {}", terminal.text());
        std::thread::sleep(Duration::from_millis(5));
    }
    terminal.press(CTRL_C);
    terminal.wait_for("stopped");
    terminal.wait_for("? ");
    terminal.send_line("/sql", "SELECT count(*) AS n FROM customers");
    terminal.send_line("And once more", "60\n");
    let last = received_requests(&server).pop().unwrap();
    assert!(
        last.contains("Count the customers") && !last.contains("never sent") && !last.contains("Now hang"),
        "{last}"
    );
    terminal.end("exit");
}
