//! What other dialects say is said in the words of each database, and the database itself finds that it means the same.

use querymend_engine::Engine;
use querymend_sql::{Applicability, Cell, Policy, RepairRequest, RepairStatus, ReviewContext, Schema, repair};
use querymend_testing::is_full_suite;

use crate::engines::subjects;
use crate::support::ask;

/// Calls of all dialects about the date `d` (Friday, 15 March 2024) and the moment `t` (31 December 2023, 23:10:05), and their value.
#[rustfmt::skip]
const SAID: &[(&str, &str)] = &[
    ("YEAR(d)", "2024"),
    ("QUARTER(d)", "1"),
    ("MONTH(d)", "3"),
    ("DAY(d)", "15"),
    ("HOUR(t)", "23"),
    ("MINUTE(t)", "10"),
    ("WEEKOFYEAR(d)", "11"),
    ("DAYOFYEAR(d)", "75"),
    ("DAYOFWEEK(d)", "6"),
    ("DATEPART(weekday, d)", "6"),
    ("DATEPART(quarter, t)", "4"),
    ("DATE_PART('month', t)", "12"),
    ("EXTRACT(YEAR FROM d)", "2024"),
    ("DATE_TRUNC('year', t)", "2023-01-01"),
    ("DATE_TRUNC('quarter', d)", "2024-01-01"),
    ("DATE_TRUNC('month', d)", "2024-03-01"),
    ("DATE_TRUNC('week', d)", "2024-03-11"),
    ("TIMESTAMP_TRUNC(d, MONTH)", "2024-03-01"),
    ("DATE_TRUNC(d, WEEK)", "2024-03-11"),
    ("DATEADD(MONTH, DATEDIFF(MONTH, 0, d), 0)", "2024-03-01"),
    ("DATEADD(day, -7, d)", "2024-03-08"),
    ("DATEADD(month, 1, d)", "2024-04-15"),
    ("DATE_ADD(d, INTERVAL 2 WEEK)", "2024-03-29"),
    ("DATE_SUB(d, INTERVAL 1 YEAR)", "2023-03-15"),
    ("DATE_ADD('quarter', 1, d)", "2024-06-15"),
    ("DATEADD(hour, 2, t)", "2024-01-01 01:10:05"),
    ("ADD_MONTHS(d, -2)", "2024-01-15"),
    ("d - INTERVAL '30 days'", "2024-02-14"),
    ("d - INTERVAL '30' DAY", "2024-02-14"),
    ("d + INTERVAL 1 MONTH", "2024-04-15"),
    ("t + INTERVAL '50 minutes'", "2024-01-01 00:00:05"),
    ("DATE(d, '-1 day')", "2024-03-14"),
    ("DATE(d, 'start of month', '-1 day')", "2024-02-29"),
    ("DATEDIFF(d, t)", "75"),
    ("DATEDIFF(day, t, d)", "75"),
    ("DATE_DIFF(d, t, DAY)", "75"),
    ("DATEDIFF(month, t, d)", "3"),
    ("DATEDIFF(year, t, d)", "1"),
    ("TIMESTAMPDIFF(YEAR, t, d)", "0"),
    ("TIMESTAMPDIFF(MONTH, t, d)", "2"),
    ("TO_CHAR(t, 'YYYY-MM-DD HH24:MI')", "2023-12-31 23:10"),
    ("DATE_FORMAT(t, '%d.%m.%Y')", "31.12.2023"),
    ("DATE_FORMAT(t, 'yyyy/MM')", "2023/12"),
    ("FORMAT(t, 'yyyy-MM')", "2023-12"),
    ("STRFTIME('%Y-%m', d)", "2024-03"),
    ("FORMAT_DATE('%Y', d)", "2024"),
    ("DAYNAME(d)", "Friday"),
    ("MONTHNAME(d)", "March"),
    ("ISNULL(NULL, 7)", "7"),
    ("ZEROIFNULL(NULL)", "0"),
    ("TO_NUMBER('2.5')", "2.5"),
    ("CASE WHEN BOOL_OR(d > t) THEN 1 ELSE 0 END", "1"),
    ("LAST_DAY(d)", "2024-03-31"),
    ("EOMONTH(d)", "2024-03-31"),
    ("DATEFROMPARTS(2024, 3, 15)", "2024-03-15"),
    ("JULIANDAY(d)", "2460384.5"),
    ("CASE WHEN GETDATE() > t THEN 1 ELSE 0 END", "1"),
    ("CASE WHEN CURRENT_DATE() > d THEN 1 ELSE 0 END", "1"),
    ("CASE WHEN CURDATE() > d THEN 1 ELSE 0 END", "1"),
    ("CAST(t AS DATE)", "2023-12-31"),
    ("TRY_CAST('7' AS INTEGER)", "7"),
    ("CONVERT('7', SIGNED)", "7"),
    ("CONVERT(INTEGER, '7')", "7"),
    ("CONVERT(VARCHAR(10), 7)", "7"),
    ("IFNULL(NULL, 7)", "7"),
    ("NVL(NULL, 7)", "7"),
    ("NVL2('x', 2, 3)", "2"),
    ("IIF(1 > 2, 'a', 'b')", "b"),
    ("LEN('abcd')", "4"),
    ("CHARINDEX('b', 'abc')", "2"),
    ("INSTR('abc', 'b')", "2"),
    ("LEFT('abcd', 2)", "ab"),
    ("CONCAT('a', 'b')", "ab"),
    ("SAFE_DIVIDE(1, 4)", "0.25"),
    ("MOD(7, 3)", "1"),
    ("COUNTIF(d > t)", "1"),
    ("APPROX_COUNT_DISTINCT(d)", "1"),
    ("STRING_AGG('x', '-')", "x"),
    ("GROUP_CONCAT('x')", "x"),
    ("LPAD('7', 3, '0')", "007"),
    ("LPAD('abcd', 3, '0')", "abc"),
    ("RPAD('ab', 5, '-+')", "ab-+-"),
    ("CASE WHEN STARTS_WITH('abc', 'ab') THEN 1 ELSE 0 END", "1"),
    ("CASE WHEN ENDS_WITH('abc', 'bc') THEN 1 ELSE 0 END", "1"),
    ("CASE WHEN ENDS_WITH('abc', 'ab') THEN 1 ELSE 0 END", "0"),
    ("CASE WHEN RAND() <= 1 THEN 1 ELSE 0 END", "1"),
    ("FIELD('b', 'a', 'b')", "2"),
    ("CHOOSE(2, 'a', 'b')", "b"),
    ("SPLIT_PART('a-b', '-', 1)", "a"),
    ("SUBSTRING_INDEX('a-b-c', '-', 1)", "a"),
    ("CONCAT_WS('-', 'a', 'b')", "a-b"),
    ("TRUNCATE(2.77, 1)", "2.7"),
    ("VAR_POP(7)", "0"),
    ("STDEVP(7)", "0"),
    ("CASE WHEN SYSTIMESTAMP > t THEN 1 ELSE 0 END", "1"),
];

/// What a dialect has no words for; it is then given up, and nothing is made up.
const UNSAID: &[(&str, &str)] = &[
    ("datafusion", "TIMESTAMPDIFF(YEAR, t, d)"),
    ("datafusion", "TIMESTAMPDIFF(MONTH, t, d)"),
    ("datafusion", "LAST_DAY(d)"),
    ("datafusion", "EOMONTH(d)"),
    ("datafusion", "JULIANDAY(d)"),
    ("trino", "DATEFROMPARTS(2024, 3, 15)"),
    ("presto", "DATEFROMPARTS(2024, 3, 15)"),
    ("spark", "DATEFROMPARTS(2024, 3, 15)"),
    ("datafusion", "TRUNCATE(2.77, 1)"),
    ("spark", "TRUNCATE(2.77, 1)"),
    ("hive", "TRUNCATE(2.77, 1)"),
];

/// What is the database's own, and means something else there: Spark counts whole units, and has no day 0.
const OWN: &[(&str, &str)] = &[
    ("spark", "DATEADD(MONTH, DATEDIFF(MONTH, 0, d), 0)"),
    ("spark", "DATEDIFF(day, t, d)"),
    ("spark", "DATEDIFF(month, t, d)"),
    ("spark", "DATEDIFF(year, t, d)"),
];

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Integer(number) => number.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Decimal(text) => text.parse::<f64>().map_or_else(|_| text.clone(), |number| number.to_string()),
        Cell::Text(text) => {
            // A date may be a moment with nothing behind the day.
            let text = text.strip_suffix("+00").or(text.strip_suffix("+00:00")).unwrap_or(text);
            text.trim_end_matches(".000").trim_end_matches(" 00:00:00").to_string()
        }
        other => format!("{other:?}"),
    }
}

async fn said(engine: &dyn Engine, schema: &Schema, moments: &str, call: &str) -> Result<String, String> {
    let policy = Policy::default();
    let context = ReviewContext { schema: Some(schema), dialect: engine.dialect(), policy: &policy, question: None };
    let text = format!("SELECT {call} AS said FROM ({moments}) AS moments");
    let request =
        RepairRequest { text: &text, context, question: None, max_applicability: Applicability::Likely, error: None };
    let mended = repair(&request, None);
    if !matches!(mended.status, RepairStatus::Mended | RepairStatus::Untouched) {
        let why: Vec<&str> = mended.findings.iter().map(|finding| finding.message.as_str()).collect();
        return Err(format!("given up: {}", why.join("; ")));
    }
    let rows = ask(engine, &mended.sql).await.map_err(|error| format!("{}: {error}", mended.sql))?;
    Ok(shown(&rows.rows[0][0]))
}

#[tokio::test]
async fn transpiled_calls_keep_their_value_in_every_database() {
    let mut wrong = Vec::new();
    for subject in subjects() {
        let engine = &*subject.open();
        let dialect = engine.dialect().name;
        let schema = engine.schema().await.unwrap();
        // Servers in Java take a good part of a second for each; unless all are wanted, every fourth is tried, others on each server.
        let sample = subject.transpile_sample.filter(|_| !is_full_suite());
        let (first, step) = sample.map_or((0, 1), |first| (first, 4));
        let tried = SAID.iter().skip(first).step_by(step).filter(|(call, _)| !OWN.contains(&(dialect, call)));
        for (call, value) in tried {
            let heard = said(engine, &schema, subject.moments, call).await;
            let right = match &heard {
                Ok(heard) => heard == value || heard.parse::<f64>().is_ok_and(|n| value.parse() == Ok(n)),
                Err(why) => why.starts_with("given up") && UNSAID.contains(&(dialect, call)),
            };
            if !right {
                wrong.push(format!("{dialect}: {call} is {value}, not {heard:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
