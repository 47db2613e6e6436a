//! The words that models read.

use querymend::event::Feedback;
use querymend::prompts::{self, DraftPrompt, VARIANTS};
use querymend::retry::RetryStrategy;
use querymend::strategies::{self, AttemptFailure, STRATEGIES, StrategyContext};
use querymend_model::{Message, MessageRole};
use querymend_sql::dialect::DIALECTS;
use querymend_sql::{EngineError, LiteralFilter, Policy, ReviewContext, Schema, classify, review};

fn text(messages: &[Message]) -> String {
    let one = |m: &Message| {
        let role = match m.role {
            MessageRole::System => "system",
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
        };
        format!("[{role}]\n{}\n", m.text)
    };
    messages.iter().map(one).collect()
}

#[test]
fn renders_every_prompt() {
    let earlier = [("How many orders?".to_string(), "SELECT count(*) FROM orders".to_string())];
    let draft = DraftPrompt {
        dialect: "SQLite",
        notes: "Dates are text.",
        schema: "CREATE TABLE orders (id INTEGER);",
        evidence: Some("large means over 100"),
        examples: &[],
        history: &earlier,
        question: "And how many large ones?",
    };
    // Notes on the dialect are only for the careful wording: small models write worse with them.
    let notes = ["", "Dates are text.\n\n"];
    let asked = "large means over 100\n\nQuestion: How many \
                 orders?\nSELECT count(*) FROM orders\n\nQuestion: And how many large ones?\n";
    let systems = [
        "You translate questions into one SQLite query. Answer with SQL only.",
        "You translate questions into one SQLite query. Use only tables and columns that are listed, join along the keys, and \
         select exactly what is asked for, nothing else. Answer with SQL only.",
    ];
    assert_eq!(VARIANTS.len(), systems.len());
    for ((variant, system), notes) in VARIANTS.iter().zip(systems).zip(notes) {
        let whole = format!("[system]\n{system}\n[user]\nCREATE TABLE orders (id INTEGER);\n\n{notes}{asked}");
        assert_eq!(text(&prompts::draft(variant, &draft)), whole, "{}", variant.name);
    }
    // What is not there leaves no gap.
    let bare = DraftPrompt { notes: "", evidence: None, history: &[], ..draft };
    assert!(
        text(&prompts::draft(&VARIANTS[0], &bare))
            .ends_with("[user]\nCREATE TABLE orders (id INTEGER);\n\nQuestion: And how many large ones?\n")
    );
    assert_eq!(
        text(&prompts::chat("Hello!", &["orders", "products"])),
        "[system]\nYou are an assistant that answers questions about a database. This message does not ask for data: reply in \
         one or two short sentences, without SQL. The database has these tables: orders, products.\n[user]\nHello!\n"
    );
    assert_eq!(
        text(&prompts::analyse("CREATE TABLE t (x);", Some("x is y"), "How many?")),
        "[system]\nYou write one SQLite query over tables that were loaded from a larger database. Answer with SQL only.\n\
         [user]\nCREATE TABLE t (x);\n\nKeep it simple: few joins, plain functions.\nx is y\n\nQuestion: How many?\n"
    );
    assert_eq!(
        text(&prompts::summarise("How many?", "n\n7")),
        "[system]\nYou tell a reader in one sentence what the rows say. Use only the figures that are there.\n[user]\n\
         Question: How many?\n\nn\n7\n"
    );
    let feedback = [Feedback { kind: "x".into(), text: "Write it so.".into() }];
    assert_eq!(
        text(&[prompts::revise("The query failed: no.", &feedback)]),
        "[user]\nThe query failed: no.\nWrite it so.\nAnswer with the corrected query only.\n"
    );
}

#[derive(serde::Deserialize)]
struct Recorded {
    sql: String,
    #[serde(flatten)]
    error: EngineError,
}

#[test]
fn keeps_feedback_under_one_hundred_tokens() {
    let policy = Policy::default();
    let (mut longest, mut count) = ((0, String::new()), 0);
    for dialect in DIALECTS {
        let recorded = format!("{}/../sql/tests/errors/{}.jsonl", env!("CARGO_MANIFEST_DIR"), dialect.name);
        let lines = std::fs::read_to_string(recorded).unwrap();
        let ddl =
            include_str!("../../../../sql/tests/pages/shop.sql").replace('"', &dialect.identifier_quote.to_string());
        let schema = Schema::from_ddl(&ddl, dialect).unwrap();
        let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };
        for line in lines.lines() {
            let Recorded { sql, error } = serde_json::from_str(line).unwrap();
            let said = classify(dialect, &error);
            let stated = LiteralFilter { table: "products".into(), column: "category".into(), value: "toys".into() };
            let trouble = AttemptFailure {
                findings: review(&sql, &context).findings,
                sql,
                code: said.finding.into(),
                subject: said.names.first().map_or(String::new(), |(_, name)| name.clone()),
                error_type: querymend_sql::ErrorType::of(said.finding),
                message: error.message.clone(),
                from_database: true,
                values: vec![(stated, (0..12).map(|n| format!("a value of some length {n}")).collect())],
            };
            for attempt in [2, 3] {
                let view = StrategyContext {
                    schema: &schema,
                    dialect,
                    linked_tables: &[],
                    attempt,
                    max_attempts: 3,
                    policy: RetryStrategy::AutoRetryWithLlm,
                };
                let chosen = strategies::choose(&AttemptFailure { values: Vec::new(), ..trouble.clone() }, &view);
                for strategy in STRATEGIES.iter().copied().chain([chosen]) {
                    let failure = format!("The query failed: {}.", error.message);
                    let message = prompts::revise(&failure, &(strategy.feedback)(&trouble, &view)).text;
                    // Four bytes are about a token of English and SQL.
                    let tokens = (message.len() - error.message.len()).div_ceil(4);
                    assert!(tokens < 100, "{} on {}: {tokens} tokens: {message}", strategy.name, dialect.name);
                    count += 1;
                    if tokens > longest.0 {
                        longest = (tokens, message);
                    }
                }
            }
        }
    }
    assert!(count > 15_000, "{count}");
    assert!(longest.0 > 50, "the longest is suspiciously short: {longest:?}");
}
