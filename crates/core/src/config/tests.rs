//! Tests for accepted and rejected configurations, and for the completeness of docs/guide/configuration.md.

use std::time::Duration;

use querymend_sql::ErrorType;

use super::*;
use crate::retry::RetryStrategy;

/// User documentation of the configuration file.
const PAGE: &str = include_str!("../../../../docs/guide/configuration.md");

fn error(text: &str) -> ConfigError {
    Config::from_yaml(text).unwrap_err()
}

#[test]
fn enables_self_correction_by_default() {
    for text in ["", "# nothing\n\n", "{}", "self_correction: {}"] {
        let config = Config::from_yaml(text).unwrap();
        assert_eq!(config, Config::default(), "{text}");
        assert!(config.self_correction.enabled && config.self_correction.fallback);
    }
    assert!(!Config::from_yaml("self_correction:\n  enabled: false").unwrap().self_correction.enabled);
    assert_eq!(Config::default().budget(), Budget::default());
    assert_eq!(Config::default().limits(), Limits::default());
    assert_eq!(Config::default().check(), Ok(()));
}

#[test]
fn builds_the_same_config_from_yaml_and_builder() {
    let text = "\
model: ollama:qwen2.5-coder
database: shop.db
dialect: sqlite
self_correction: {enabled: false, max_attempts: 10, preflight_validation: false, fallback: false, ask_user: true}
circuit_breaker: {failure_threshold: 3, success_threshold: 1, timeout: 500ms, max_timeout: 2m}
budget: {tokens: 20000, cost_usd: 0.25, time: 90s, request: 45s}
limits: {rows: 100, bytes: 1048576, time: 5s}
retry_policy: {unknown: fail_immediately}
policy: {deny_tables: [secrets]}
prompt: terse
temperature: 0.5
providers: more.toml
models: models.toml
trace: {max_traces: 7, folder: traces}
";
    let breaker = BreakerSettings {
        failure_threshold: 3,
        success_threshold: 1,
        timeout: Duration::from_millis(500),
        max_timeout: Duration::from_secs(120),
    };
    let built = Config::default()
        .with_model("ollama:qwen2.5-coder")
        .with_database("shop.db")
        .with_dialect("sqlite")
        .with_self_correction(false)
        .with_max_attempts(10)
        .with_preflight_validation(false)
        .with_fallback(false)
        .with_ask_user(true)
        .with_circuit_breaker(breaker)
        .with_max_tokens(20_000)
        .with_max_cost_usd(0.25)
        .with_max_time(Duration::from_secs(90))
        .with_max_request_time(Duration::from_secs(45))
        .with_limits(Limits { rows: 100, bytes: 1 << 20, time: Duration::from_secs(5), ..Limits::default() })
        .with_retry_policy(RetryPolicy::default().with(ErrorType::Unknown, RetryStrategy::FailImmediately).unwrap())
        .with_policy(Policy { deny_tables: vec!["secrets".into()], ..Policy::default() })
        .with_prompt("terse")
        .with_temperature(0.5)
        .with_providers("more.toml")
        .with_models("models.toml")
        .with_trace(7, "traces");
    let read = Config::from_yaml(text).unwrap();
    assert_eq!(read, built);
    assert_eq!(built.check(), Ok(()));
    assert_eq!(Config::from_yaml(&serde_json::to_string(&built).unwrap()).unwrap(), built, "JSON is YAML too");
    let budget = read.budget();
    assert_eq!((budget.max_attempts, budget.max_tokens, budget.max_cost_usd), (10, Some(20_000), Some(0.25)));
    assert_eq!(read.limits().time, Duration::from_secs(5));
}

/// One mistake per line, with the expected message.
#[test]
fn reports_config_errors_with_line_column_and_field() {
    let cases = [
        "modle: x",
        "self_correction:\n  max_attempts: 0",
        "self_correction:\n  max_attempts: 11",
        "self_correction:\n  enabled: perhaps",
        "# first\ncircuit_breaker:\n  failure_threshold: 0",
        "circuit_breaker:\n  timeout: 30",
        "circuit_breaker:\n  timeout: 2m",
        "circuit_breaker:\n  max_timeout: 2s",
        "budget:\n  cost_usd: -1",
        "budget:\n  cost_usd: much",
        "limits:\n  rows: many",
        "limits:\n  rows: 0",
        "retry_policy:\n  syntax_eror: limited_retry",
        "retry_policy:\n  syntax_error: again",
        "retry_policy:\n  timeout:\n    strategy: limited_retry\n    max_attempts: 99",
        "retry_policy:\n  permission_denied: limited_retry",
        "policy:\n  comments: keep",
        "temperature: 3",
        "dialect: klingon",
        "trace:\n  max_traces: -1",
        "model: [a]",
        "model: a\nmodel: b",
        "self_correction: [",
        "api_key: hunter2",
        "budget:\n  openai_token: hunter2",
        "model: openai:sk-0123456789abcdefghij",
        "database: postgres://shop:hunter2@db.example/shop",
    ];
    let dialects: Vec<&str> = querymend_sql::dialect::DIALECTS.iter().map(|dialect| dialect.name).collect();
    let messages: String = cases.iter().map(|text| format!("{}\n", error(text))).collect();
    let messages = messages.replace(&dialects.join(", "), "…");
    for (case, line) in cases.iter().zip(messages.lines()) {
        assert!(!line.contains("hunter2") && !line.contains("sk-0123"), "{case}: {line}");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/mistakes.txt");
    if std::env::var_os("QUERYMEND_BLESS").is_some() {
        std::fs::write(file, &messages).unwrap();
    }
    assert_eq!(messages, std::fs::read_to_string(file).unwrap(), "QUERYMEND_BLESS=1 writes the messages");
}

#[test]
fn rejects_secrets_and_suggests_environment_or_file() {
    for text in
        ["api_key: x", "budget: {token: x}", "database: mysql://a:b@c/d", "model: openai:sk-0123456789abcdefghij"]
    {
        let error = error(text);
        assert!(error.message.contains("secrets do not belong"), "{error}");
        assert!(error.hint.contains("environment") && error.hint.contains("_file"), "{}", error.hint);
    }
}

#[test]
fn validates_config_set_by_code() {
    let check = |config: Config, field: &str, words: &str| {
        let error = config.check().unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field));
        assert!(error.message.contains(words), "{error}");
    };
    check(Config::default().with_max_attempts(0), "self_correction.max_attempts", "1 to 10");
    check(Config::default().with_temperature(f32::NAN), "temperature", "0 to 2");
    check(Config::default().with_max_cost_usd(f64::NAN), "budget.cost_usd", "more than 0");
    check(Config::default().with_max_time(Duration::ZERO), "budget.time", "no time");
    check(Config::default().with_max_request_time(Duration::ZERO), "budget.request", "no time");
    check(Config::default().with_database("x://a:b@c"), "database", "secrets");
    let breaker = BreakerSettings { success_threshold: 0, ..BreakerSettings::default() };
    check(Config::default().with_circuit_breaker(breaker), "circuit_breaker.success_threshold", "1 to 1000");
}

#[test]
fn finds_config_file_and_resolves_paths_against_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (here, home) = (folder.path().join("here"), folder.path().join("home"));
    let far = home.join(".config/querymend/querymend.yaml");
    std::fs::create_dir_all(&here).unwrap();
    std::fs::create_dir_all(far.parent().unwrap()).unwrap();
    let find = |pairs: &[(&str, &Path)]| {
        Config::find_from(&here, |name| {
            pairs.iter().find(|(variable, _)| *variable == name).map(|(_, path)| path.as_os_str().to_owned())
        })
    };
    assert_eq!(find(&[("HOME", &home)]), None);
    std::fs::write(&far, "providers: more.toml\ntrace: {folder: /traces}\ndatabase: shop.db").unwrap();
    assert_eq!(find(&[("HOME", &home)]).as_ref(), Some(&far));
    assert_eq!(find(&[("HOME", &home), ("XDG_CONFIG_HOME", &home.join(".config"))]).as_ref(), Some(&far));
    assert_eq!(find(&[("HOME", &home), ("XDG_CONFIG_HOME", &here)]), None);
    assert_eq!(find(&[("HOME", Path::new("home"))]), None, "not absolute");
    let config = Config::read(&far).unwrap();
    assert_eq!(config.providers, Some(home.join(".config/querymend/more.toml")));
    assert_eq!((config.trace.folder, config.database), (Some("/traces".into()), Some("shop.db".into())));
    let near = here.join(FILE_NAME);
    std::fs::write(&near, "prompt: [").unwrap();
    assert_eq!(find(&[("HOME", &home)]).as_ref(), Some(&near));
    let error = Config::read(&near).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}: line 1", near.display())), "{error}");
    let error = Config::read(here.join("nothing.yaml")).unwrap_err();
    assert!(error.to_string().contains("nothing.yaml: it cannot be read"), "{error}");
}

#[test]
fn documents_every_config_field_with_a_valid_example() {
    fn fields(value: &serde_json::Value, above: &str, out: &mut Vec<String>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            fields(value, &path, out);
            out.push(path);
        }
    }
    let mut names = Vec::new();
    fields(&serde_json::to_value(Config::default()).unwrap(), "", &mut names);
    assert!(names.len() > 35, "{names:?}");
    for name in names {
        assert!(PAGE.contains(&format!("`{name}`")), "docs/guide/configuration.md does not speak of {name}");
    }
    for kind in ["syntax_error", "ambiguous_column", "not_read_only", "resource_limit"] {
        assert!(PAGE.contains(&format!("`{kind}`")), "{kind}");
    }
    let mut examples = PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let example = Config::from_yaml(examples.next().unwrap()).unwrap();
    assert_eq!(example.model.as_deref(), Some("ollama:qwen2.5-coder"));
    assert!(examples.next().is_none());
}
