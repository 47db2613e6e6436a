//! Files that somebody writes or damages: `querymend.yaml`, and the runs that are kept.

use std::fs;

use querymend::TraceStore;
use querymend::config::Config;
use querymend_testing::{CountingAllocator, FuzzTarget, is_full_suite, mutate_text, peak_memory};

/// Counts by thread what is allocated, so that the other tests of this program do not disturb it.
#[global_allocator]
static COUNTED: CountingAllocator = CountingAllocator;

fn within<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let (done, held) = peak_memory(work);
    assert!(held <= most, "{held} bytes were held at once");
    done
}

#[test]
fn fuzz_config() {
    let whole = serde_saphyr::to_string(&Config::default()).unwrap();
    let seeds = [
        whole.as_str(),
        "model: ollama:qwen2.5-coder\nself_correction: {max_attempts: 2}\ntemperature: 0.5\n",
        "policy:\n  deny_tables: [salaries]\n  deny_columns: [people.ssn]\n  max_rows: 10\n",
        "server:\n  auth:\n    jwt: {algorithm: HS256, key_file: key, audience: a}\n  roles:\n    reader: {policy: {allow_tables: [a]}}\n",
        "retry_policy:\n  timeout: {action: limited_retry, max_attempts: 2}\n",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    ];
    let words = [
        "model:",
        "database:",
        "policy:",
        "server:",
        "limits:",
        "budget:",
        "memory:",
        "trace:",
        "  rows:",
        "timeout:",
        "30s",
        "24h",
        "-1",
        "1e400",
        ".inf",
        ".nan",
        "null",
        "~",
        "true",
        "no",
        "&a",
        "*a",
        "<<: *a",
        "!!binary",
        "!x",
        "|",
        ">-",
        "---",
        "...",
        "? ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "'",
        "\"\\x00\"",
        "\"\\ud800\"",
        "#",
        "\t",
        "0o17",
        "18446744073709551616",
        "sk-0123456789abcdef0123456789abcdef",
        "postgres://me:hunter2@host/db",
        "%YAML 1.2",
    ];
    let target = FuzzTarget::new("config", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(if is_full_suite() {
        2_000
    } else {
        500
    });
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        let text = String::from_utf8_lossy(input);
        match within((8 << 20) + 1_000 * input.len(), || Config::from_yaml(&text)) {
            Ok(config) => {
                assert!(config.check().is_ok(), "what was read is refused");
                let written = serde_saphyr::to_string(&config).unwrap();
                let again = Config::from_yaml(&written);
                assert!(
                    again.as_ref().is_ok_and(|again| *again == config),
                    "it is not read as it was written: {again:?}\n{written}"
                );
            }
            Err(error) => {
                let told = format!("{error} {error:?}");
                let shown =
                    told.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | ',')).any(|word| {
                        let password = word.matches("://").count() == 1 && word.contains("://me:hunter2@");
                        password || word.starts_with("sk-0123456789abcdef0123")
                    });
                assert!(!shown, "a secret is shown: {told}");
            }
        }
    });
}

#[test]
fn fuzz_traces() {
    let folder = tempfile::tempdir().unwrap();
    let id = "00000001-0000-7000-8000-000000000000";
    let file = folder.path().join(format!("{id}.jsonl"));
    let traces = TraceStore::new(folder.path(), 10);
    let seeds = [
        "{\"stage\":\"generation\",\"attempt\":1}\n{\"stage\":\"finished\",\"answer\":{\"rows\":{\"rows\":[[1,null]]}}}\n",
    ];
    let words = ["{", "}", "[", "]", "\"stage\":", "null", "1e999", "\\ud800", "\n", "\r\n", "[[[["];
    let target = FuzzTarget::new("traces", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(if is_full_suite() {
        1_000
    } else {
        250
    });
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        fs::write(&file, input).unwrap();
        let events = within((1 << 20) + 400 * input.len(), || traces.read_exact(id)).unwrap().unwrap();
        assert!(events.len() <= String::from_utf8_lossy(input).lines().count(), "there are more events than lines");
        assert_eq!(traces.read("00000001").unwrap().unwrap(), events);
    });
}
