//! A server whose clock on the wall jumps by years, forwards and back, while it is used.

use std::process::{Child, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{EncodingKey, Header};
use querymend_testing::hang_timeout;
use serde_json::{Value, json};

use crate::TestDir;
use crate::audit::{HttpOutcome, send, wait_for_address};
use crate::server::ScriptedModelServer;

const SECRET: &str = "0123456789abcdef0123456789abcdef-of-a-test";
const DAY: i64 = 86_400;
/// Requests of one user in a minute.
const PER_MINUTE: u32 = 40;
/// How far the clock is off, in seconds, one after the other.
const JUMPS: &[i64] = &[0, 400 * DAY, -400 * DAY, -20_000 * DAY, 3_600, 0];

/// A server whose clock is moved by a library in front of the system's; the steady clock stays as it is.
struct ClockShiftedServer<'a> {
    place: &'a TestDir,
    child: Child,
    address: String,
    answered: usize,
}

impl ClockShiftedServer<'_> {
    fn jump(&self, seconds: i64) {
        self.place.write_file("clock", format!("{seconds:+}\n"));
    }

    /// What a user whose token ends at this moment hears.
    fn send_as(&mut self, user: &str, ends: i64, what: &str, body: &Value) -> (u16, Value) {
        let claims = json!({"sub": user, "aud": "querymend", "exp": ends});
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        let token = jsonwebtoken::encode(&Header::default(), &claims, &key).unwrap();
        match send(&self.address, what, &format!("authorization: Bearer {token}"), &body.to_string()) {
            HttpOutcome::Complete(status, body) => {
                self.answered += usize::from(status == 200 && (what.contains("/run") || what.contains("/ask")));
                (status, serde_json::from_str(&body).unwrap_or_default())
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

impl Drop for ClockShiftedServer<'_> {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// How often a user was let through until a request was refused.
struct ExhaustedLimit {
    admitted: u32,
    /// When the request was sent that was refused.
    at: Instant,
    refused: (u16, Value),
}

/// Asks in the name of one user until that is too often.
fn exhaust_rate_limit(server: &mut ClockShiftedServer<'_>, ends: i64) -> ExhaustedLimit {
    let begun = Instant::now();
    let mut admitted = 0;
    loop {
        let at = Instant::now();
        let refused = server.send_as("bob", ends, "POST /v1/run", &json!({"sql": "SELECT 1"}));
        if refused.0 != 200 {
            return ExhaustedLimit { admitted, at, refused };
        }
        admitted += 1;
        assert!(begun.elapsed() < hang_timeout(), "{admitted} requests were let through");
    }
}

fn start_server<'a>(place: &'a TestDir, library: &str, model: &str) -> ClockShiftedServer<'a> {
    place.write_file("clock", "+0\n");
    let arguments = ["serve", "--db", "shop.db", "--bind", "127.0.0.1:0", "--audit", "audit.jsonl", "--model", model];
    let mut command = place.command(&arguments);
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", place.path("clock"));
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let address = wait_for_address(&mut child);
    ClockShiftedServer { place, child, address, answered: 0 }
}

#[test]
#[allow(clippy::print_stderr, reason = "that it is left out must be seen")]
fn clock_jumps_lose_nothing_and_admit_no_intruder() {
    let Ok(library) = std::env::var("QUERYMEND_FAKETIME") else {
        eprintln!("skipped: QUERYMEND_FAKETIME names no libfaketime; scripts/faketime.sh fetch does");
        return;
    };
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    place.write_file("secret", SECRET);
    place.write_file(
        "querymend.yaml",
        format!(
            "providers: providers.toml\nmodels: models.toml\nserver: {{limits: {{requests_per_minute: {PER_MINUTE}}}, auth: {{jwt: {{algorithm: HS256, key_file: secret, audience: querymend}}}}}}\n"
        ),
    );
    let model = ScriptedModelServer::with_replies(&["SELECT id FROM products WHERE category = 'Electronics'"]);
    let mut server = start_server(&place, &library, &model.model);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let here = now + DAY;

    // What is begun before the first jump must outlast all of them.
    let (status, talk) = server.send_as("ann", here, "POST /v1/sessions", &json!({}));
    assert!(status < 300, "{status} {talk}");
    let talk = talk["session_id"].as_str().unwrap().to_owned();
    let all = json!({"sql": "SELECT product_id FROM products ORDER BY product_id"});
    let (status, page) = server.send_as("ann", here, "POST /v1/run?page_size=2", &all);
    assert_eq!(status, 200, "{page}");
    let mut cursor = page["cursor"].as_str().unwrap().to_owned();
    // One user has asked as often as may be.
    let mut spent = exhaust_rate_limit(&mut server, here);
    assert_eq!(spent.refused.0, 429, "{}", spent.refused.1);
    assert!(spent.admitted >= PER_MINUTE, "{}", spent.admitted);

    for (number, jump) in JUMPS.iter().enumerate() {
        server.jump(*jump);
        // Tokens go by the clock on the wall, and must: one that ended a day ago by that clock lets nobody in.
        let ends = now + jump + DAY;
        for path in ["POST /v1/run", "POST /v1/ask"] {
            let (status, body) =
                server.send_as("ann", now + jump - DAY, path, &json!({"sql": "SELECT 1", "question": "?"}));
            assert_eq!(status, 401, "a jump of {jump}: {body}");
        }
        let question = json!({"question": "Which electronics are there?", "session_id": talk});
        let (status, answer) = server.send_as("ann", ends, "POST /v1/ask", &question);
        assert_eq!(status, 200, "a jump of {jump}: {answer}");
        let (status, trace) = server.send_as(
            "ann",
            ends,
            &format!("GET /v1/traces/{}", answer["trace_id"].as_str().unwrap()),
            &json!({}),
        );
        assert_eq!(status, 200, "a jump of {jump}: {trace}");
        let (status, kept) = server.send_as("ann", ends, &format!("GET /v1/sessions/{talk}"), &json!({}));
        assert_eq!(status, 200, "a jump of {jump}: {kept}");
        assert_eq!(kept["turns"].as_array().unwrap().len(), number + 1, "a jump of {jump}: {kept}");
        let (status, page) = server.send_as("ann", ends, &format!("GET /v1/results/{cursor}?page_size=2"), &json!({}));
        assert_eq!((status, page["rows"]["rows"].as_array().map(Vec::len)), (200, Some(2)), "a jump of {jump}: {page}");
        page["cursor"].as_str().unwrap().clone_into(&mut cursor);
        // Nobody gets forty more because a minute seems to have passed: only what came back in the time that really has.
        let since = spent.at;
        spent = exhaust_rate_limit(&mut server, ends);
        assert_eq!(spent.refused.0, 429, "a jump of {jump}: {}", spent.refused.1);
        let came_back = since.elapsed().as_secs_f64() * f64::from(PER_MINUTE) / 60.0;
        assert!(f64::from(spent.admitted) <= came_back + 1.0, "a jump of {jump}: {} of {came_back}", spent.admitted);
    }
    let lines = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    let ends = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends =
        ends.filter(|line| line["outcome"] == "answered" || (line["outcome"] == "ran" && line["action"] == "run"));
    assert_eq!(ends.count(), server.answered, "{lines}");
}
