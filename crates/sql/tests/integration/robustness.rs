//! Whatever is sent: an answer, in bounded time and stack, on a thread with the small stack that servers give.

use querymend_sql::dialect::DIALECTS;
use querymend_sql::{
    Applicability, Policy, RepairRequest, RepairStatus, ReviewContext, Schema, Verdict, repair, review,
};
use querymend_testing::is_full_suite;

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// What is sent, and whether it must be refused (`None`: either is right).
fn inputs() -> Vec<(&'static str, String, Option<bool>)> {
    let doubled =
        (1..40).map(|i| format!("c{i} AS (SELECT x.*, y.* FROM c{} x, c{} y)", i - 1, i - 1)).collect::<Vec<_>>();
    vec![
        ("empty", String::new(), Some(true)),
        ("blank", " \n\t ".into(), Some(true)),
        ("semicolons", ";".repeat(10_000), Some(true)),
        ("NUL", "SELECT \0 1".into(), Some(true)),
        ("10,000 parentheses", nested("SELECT (", "1", ")", 10_000), Some(true)),
        ("10,000 open parentheses", "(".repeat(10_000), Some(true)),
        ("60 parentheses", format!("SELECT {}", nested("(", "1", ")", 60)), Some(false)),
        ("60 tables in parentheses", format!("SELECT 1 FROM {}", nested("(", "t", ")", 60)), None),
        ("60 subqueries", nested("SELECT * FROM (", "SELECT 1", ") x", 60), Some(false)),
        ("60 scalar subqueries", nested("SELECT (", "SELECT 1", ")", 60), Some(false)),
        ("300 CASE", format!("SELECT {}", nested("CASE WHEN 1 = 1 THEN ", "1", " END", 300)), None),
        ("5,000 NOT", format!("SELECT {} true", "NOT ".repeat(5_000)), Some(true)),
        ("a long sum", format!("SELECT {}1", "1+".repeat(100_000)), Some(true)),
        ("a sum of 1,400", format!("SELECT {}1", "1+".repeat(1_400)), Some(false)),
        ("1,400 casts", format!("SELECT 1{}", "::int".repeat(1_400)), None),
        ("600 ORs", format!("SELECT 1 FROM t WHERE {}", vec!["a = 1"; 600].join(" OR ")), Some(false)),
        (
            "IN with 50,000 members",
            format!("SELECT 1 FROM t WHERE a IN ({})", vec!["7"; 50_000].join(",")),
            Some(false),
        ),
        ("900 UNIONs", format!("SELECT 1{}", " UNION SELECT 1".repeat(900)), Some(false)),
        (
            "80,000 columns",
            format!("SELECT {}", (0..80_000).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",")),
            Some(true),
        ),
        (
            "9,000 columns",
            format!("SELECT {} FROM t", (0..9_000).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",")),
            Some(false),
        ),
        ("a literal of 1 MB", format!("SELECT '{}'", "x".repeat(1_000_000)), Some(false)),
        ("2 MB", format!("SELECT '{}'", "x".repeat(2_000_000)), Some(true)),
        (
            "columns that double 40 times",
            format!("WITH c0 AS (SELECT 1 a, 2 b), {} SELECT * FROM c39", doubled.join(", ")),
            Some(false),
        ),
        ("apostrophes", "SELECT 'a'b' ".repeat(5_000), Some(true)),
        ("fences", "```".repeat(10_000), Some(true)),
        ("fences with SQL", "```sql\nSELEC 1\n".repeat(2_000), Some(true)),
        ("comments", "-- from ".repeat(20_000), Some(true)),
        ("open comment", format!("SELECT 1 /* {}", "*".repeat(50_000)), None),
        ("dollar quotes", format!("SELECT {}", "$a$".repeat(20_001)), None),
        ("JSON", format!("{{\"sql\": \"{}", "\\\\".repeat(50_000)), Some(true)),
        ("prose", "with select from ".repeat(2_000), Some(true)),
        ("lines of prose", "select\n\n".repeat(20_000), Some(true)),
        ("control characters", (1u8..32).map(char::from).collect(), Some(true)),
        ("right to left", "SELECT '\u{202e}1' \u{feff}FROM\u{200b} t".into(), None),
        ("four-byte letters", "SELECT '𝕊𝔼𝕃', 𝔸 FROM 𝕋".into(), None),
    ]
}

#[test]
fn reviews_every_hostile_input_in_every_dialect() {
    let small_stack = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for dialect in DIALECTS {
            for (name, sql, refused) in inputs() {
                let policy = Policy::default();
                let review = review(&sql, &ReviewContext { schema: None, dialect, policy: &policy, question: None });
                if let Some(refused) = refused {
                    assert_eq!(
                        review.verdict() == Verdict::Refused,
                        refused,
                        "{}: {name}: {:?}",
                        dialect.name,
                        review.findings.first().map(|f| f.code)
                    );
                }
                if review.verdict() == Verdict::Refused {
                    assert!(!review.findings.is_empty(), "{}: {name} is refused without a word", dialect.name);
                }
                assert!(review.findings.len() < 2_500, "{}: {name}: {} findings", dialect.name, review.findings.len());
                for finding in &review.findings {
                    assert!(
                        finding.span.start <= finding.span.end && finding.span.end <= sql.len(),
                        "{name}: {finding:?}"
                    );
                    assert!(
                        sql.is_char_boundary(finding.span.start) && sql.is_char_boundary(finding.span.end),
                        "{name}: {finding:?}"
                    );
                }
            }
        }
    });
    small_stack.unwrap().join().unwrap();
}

/// Texts that are slow to read, or whose faults are slow to mend: each fault's fixes read the text again, and each fix is
/// reviewed. Were any of it to grow with the square of the text, these would not finish while somebody waits.
fn slow_to_mend() -> Vec<(&'static str, String)> {
    let extracts = vec!["EXTRACT(YEAR FROM order_date)"; 700].join(", ");
    let joins = " JOIN customers ON orders.customer_id = customers.customer_id".repeat(300);
    vec![
        ("1,500 nested aggregates", format!("SELECT {} FROM orders", vec!["MAX(SUM(total))"; 1_500].join(", "))),
        ("1,500 aggregates in each other", format!("SELECT {} FROM orders", nested("MAX(", "total", ")", 1_500))),
        ("700 EXTRACTs", format!("SELECT {extracts} FROM orders")),
        ("300 joins of one table", format!("SELECT customers.country FROM orders{joins}")),
        ("5,000 open parentheses", format!("SELECT name FROM products WHERE {}", "(".repeat(5_000))),
        ("2,000 WHERE", format!("SELECT name FROM products {}", "WHERE ".repeat(2_000))),
        ("2,000 conditions behind WHERE", format!("SELECT name FROM products {}", "WHERE stock = 1 ".repeat(2_000))),
        ("2,000 unknown columns", format!("SELECT {} FROM products", vec!["quantity"; 2_000].join(", "))),
        ("2,000 divisions", format!("SELECT {} FROM products", vec!["DIVIDE(price, stock)"; 2_000].join(", "))),
    ]
}

#[test]
fn bounds_repair_of_inputs_that_are_slow_to_fix() {
    let small_stack = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let policy = Policy::default();
        for (column, dialect) in DIALECTS.iter().enumerate() {
            let ddl = include_str!("../pages/shop.sql").replace('"', &dialect.identifier_quote.to_string());
            let schema = Schema::from_ddl(&ddl, dialect).unwrap();
            let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };
            // Growth with the square of the text is the same in all dialects: a quick run tries each text in two of the eight.
            let tried =
                slow_to_mend().into_iter().enumerate().filter(|(row, _)| is_full_suite() || (row + column) % 4 == 0);
            for (_, (name, text)) in tried {
                let apply = Applicability::Likely;
                let request =
                    RepairRequest { text: &text, context, question: None, max_applicability: apply, error: None };
                let repair = repair(&request, None);
                // The search may look at no more than a hundred and twenty candidates, so no more can have been applied.
                assert!(repair.applied.len() <= 120, "{}: {name}: {} fixes", dialect.name, repair.applied.len());
                let fixes: usize = review(&text, &context).findings.iter().map(|f| f.fixes.len()).sum();
                assert!(fixes <= 400, "{}: {name}: {fixes} fixes are offered", dialect.name);
                if repair.status == RepairStatus::Mended {
                    assert!(review(&repair.sql, &context).is_clean(), "{}: {name}", dialect.name);
                }
            }
        }
    });
    small_stack.unwrap().join().unwrap();
}
