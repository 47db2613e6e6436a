//! C01: statements that would do more than read, or that an engine would read differently from our parser. Each was found by
//! somebody who tried to get past the guard, many on a real server; none may be approved.

// A test says what went wrong by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use querymend_sql::{Applicability, Context, Dialect, Policy, Request, Status, Verdict, repair, review};

#[track_caller]
fn refused(policy: &Policy, lines: &[(&str, &str)]) {
    for (name, sql) in lines {
        let dialect = Dialect::named(name).unwrap_or_else(|| panic!("{name}"));
        let review = review(sql, &Context { schema: None, dialect, policy, question: None });
        assert_eq!(
            review.verdict(),
            Verdict::Refused,
            "{name}: {sql}\nwould be sent as {:?}",
            review.approve().map(|a| a.sql().to_string())
        );
        assert!(!review.findings.is_empty(), "{name}: {sql} is refused without a word");
    }
}

#[test]
fn c01_statements_that_are_no_questions() {
    refused(
        &Policy::default(),
        &[
            ("postgres", "EXPLAIN ANALYZE DELETE FROM t"),
            ("postgres", "EXPLAIN EXPLAIN DELETE FROM t"),
            ("postgres", "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x"),
            ("postgres", "SELECT 1 INTO t"),
            ("mysql", "SELECT 1 INTO OUTFILE '/tmp/x'"),
            ("postgres", "COPY t TO '/x'"),
            ("postgres", "CALL f()"),
            ("postgres", "DO $$ BEGIN DELETE FROM t; END $$"),
            ("postgres", "SET x = 1"),
            ("postgres", "LISTEN x"),
            ("postgres", "PREPARE x AS DELETE FROM t"),
            ("postgres", "DECLARE c CURSOR FOR SELECT 1"),
            ("postgres", "SELECT * FROM t; DROP TABLE t"),
            ("postgres", "COMMIT; DROP TABLE t"),
            ("postgres", "SELECT * FROM t FOR UPDATE"),
            ("postgres", "SELECT 1 WHERE EXISTS (SELECT 1 FROM t FOR UPDATE)"),
            ("sqlite", "PRAGMA writable_schema = 1"),
            ("sqlite", "ATTACH 'x' AS y"),
            ("sqlite", "VACUUM"),
            ("sqlite", "REPLACE INTO t VALUES (1)"),
            ("mysql", "SELECT @x := 1"),
            ("mysql", "SELECT 1 PROCEDURE ANALYSE()"),
            ("spark", "SELECT TRANSFORM(a) USING 'cat' FROM t"),
        ],
    );
}

#[test]
fn c01_dangerous_functions_in_every_place_a_function_can_stand() {
    let places = [
        "SELECT {}",
        "SELECT pg_catalog.{}",
        "SELECT 1 FROM {}",
        "SELECT (SELECT max({}))",
        "SELECT 1 ORDER BY {}",
        "SELECT sum(1) OVER (ORDER BY {})",
        "SELECT count(*) FILTER (WHERE {} IS NULL)",
        "SELECT 1 LIMIT (SELECT {})",
        "VALUES ({})",
        "SELECT * FROM a JOIN b ON {} IS NULL",
        "SELECT * FROM (VALUES ({})) v",
        "SELECT ARRAY[{}]",
        "SELECT CASE {} WHEN 1 THEN 1 END",
        "SELECT a[{}] FROM t",
        "SELECT * FROM LATERAL {}",
        "SELECT DISTINCT ON ({}) 1",
        "SELECT 1 GROUP BY ROLLUP ({})",
        "SELECT string_agg(a, b ORDER BY {}) FROM t",
        "SELECT 1 FROM t WINDOW w AS (PARTITION BY {})",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY {}) FROM t",
        "WITH a AS (SELECT {}) SELECT 1",
        "SELECT 1 UNION SELECT {}",
        "SELECT 1 WHERE 1 IN ({})",
        "SELECT 1 WHERE 1 BETWEEN 0 AND {}",
        "SELECT CAST({} AS text)",
        "SELECT 1 HAVING {} IS NULL",
        "SELECT * FROM t TABLESAMPLE SYSTEM ({})",
        "(SELECT 1) ORDER BY {}",
    ];
    for place in places {
        refused(&Policy::default(), &[("postgres", place.replace("{}", "pg_sleep(1)").as_str())]);
    }
    refused(
        &Policy::default(),
        &[
            ("postgres", "SELECT \"pg_sleep\"(1)"),
            ("postgres", "SELECT query_to_xml('delete from t', true, true, '')"),
            ("postgres", "SELECT lo_import('/etc/passwd')"),
            ("postgres", "SELECT nextval('s')"),
            ("postgres", "SELECT set_config('a', 'b', false)"),
            ("postgres", "SELECT dblink('x', 'y')"),
            ("postgres", "SELECT wipe()"),
            ("postgres", "SELECT vault.create_secret('x')"),
            ("postgres", "SELECT evil.sum(x) FROM t"),
            ("sqlite", "SELECT load_extension('x')"),
            ("sqlite", "SELECT fts3_tokenizer('x')"),
            ("mysql", "SELECT SLEEP(5)"),
            ("mysql", "SELECT LOAD_FILE('/etc/passwd')"),
            ("mysql", "SELECT TRIM(LOAD_FILE('x'))"),
            ("mysql", "SELECT EXTRACT(DAY FROM SLEEP(1))"),
            ("trino", "SELECT * FROM TABLE(system.query(query => 'drop table x'))"),
            ("trino", "SELECT * FROM TABLE(foo('x'))"),
            ("spark", "SELECT reflect('java.lang.System', 'exit', 1)"),
            ("spark", "SELECT transform(array(1), x -> java_method('a', 'b'))"),
            ("spark", "SELECT * FROM t LATERAL VIEW explode(array(reflect('a', 'b'))) v AS c"),
            ("spark", "SELECT IDENTIFIER('reflect')('a', 'b')"),
            ("spark", "SELECT * FROM read_files('/etc')"),
            ("datafusion", "SELECT * FROM read_csv('/etc/passwd')"),
        ],
    );
}

#[test]
fn c01_text_that_an_engine_reads_differently() {
    refused(
        &Policy::default(),
        &[
            // The parser's own loop ends at END.
            ("postgres", "SELECT 1 END, pg_sleep(5)"),
            ("sqlite", "SELECT 1 END, load_extension('x')"),
            ("mysql", "SELECT a FROM t END FOR UPDATE"),
            ("postgres", "SELECT 1 END; DROP TABLE t"),
            // Names and literals with escapes that the parser does not know.
            ("postgres", "SELECT U&\"pg\\005fsleep\"(10) FROM (SELECT 1 AS u) t"),
            ("postgres", "SELECT E'a'\n'b\\' , ', pg_read_file('PG_VERSION')-- '"),
            ("hive", "SELECT '\\' || ', reflect(\"java.lang.System\",\"exit\",1) -- '"),
            ("spark", "SELECT r'\\' , reflect(\"a\",\"b\") -- '"),
            ("spark", "SELECT '${env:SECRET}'"),
            // Comments that begin inside an operator.
            ("postgres", "SELECT ARRAY[1] <@-- '\nARRAY[1], pg_sleep(1) -- '"),
            ("postgres", "SELECT 'a' ||/* ' */ 'b', pg_read_file('PG_VERSION') -- '"),
            ("mysql", "SELECT 1 /*!50000 , sleep(5) */"),
            ("mysql", "SELECT 'a\\'', email FROM /*!99999 (SELECT 1 AS email) AS */ customers"),
            // Letters that nobody sees.
            ("sqlite", "SELECT pw FROM \u{feff}secret"),
            ("sqlite", "SELECT \u{feff}load_extension('x')"),
        ],
    );
}

#[test]
fn c01_denied_tables_in_every_place_a_table_can_stand() {
    let policy =
        Policy { deny_tables: vec!["secret".into(), "cat.hr.people".into(), "kunden".into()], ..Policy::default() };
    refused(
        &policy,
        &[
            ("postgres", "SELECT * FROM secret"),
            ("postgres", "SELECT * FROM \"secret\""),
            ("postgres", "SELECT * FROM public.secret"),
            ("postgres", "SELECT * FROM ONLY secret"),
            ("postgres", "SELECT (SELECT max(pw) FROM secret)"),
            ("postgres", "SELECT 1 UNION TABLE secret"),
            ("postgres", "(SELECT a FROM t) ORDER BY (SELECT pw FROM secret)"),
            ("postgres", "VALUES (1), (2) ORDER BY (SELECT pw FROM secret)"),
            ("postgres", "SELECT 1 FROM t TABLESAMPLE BERNOULLI ((SELECT pw FROM secret))"),
            ("datafusion", "SELECT a FROM t |> EXTEND (SELECT max(pw) FROM secret) AS z"),
            ("datafusion", "SELECT * REPLACE ((SELECT max(pw) FROM secret) AS a) FROM t"),
            ("spark", "SELECT * FROM t PIVOT (max(a) FOR b IN (SELECT pw FROM secret))"),
            ("trino", "SELECT * FROM TABLE(exclude_columns(input => TABLE(secret), columns => DESCRIPTOR(a)))"),
            ("trino", "SELECT * FROM \"secret$partitions\""),
            ("trino", "SELECT * FROM cat.hr.people"),
            ("mysql", "WITH RECURSIVE a AS (SELECT * FROM secret), secret AS (SELECT 1) SELECT * FROM a"),
            ("mysql", "WITH Secret AS (SELECT 1 AS pw) SELECT * FROM secret"),
            ("sqlite", "WITH \u{212a}unden AS (SELECT 1) SELECT * FROM kunden"),
            ("sqlite", "SELECT * FROM pragma_table_info('secret')"),
        ],
    );
    refused(
        &Policy::default(),
        &[
            ("postgres", "SELECT * FROM pg_authid"),
            ("postgres", "SELECT 1 UNION TABLE pg_authid"),
            ("postgres", "SELECT most_common_vals FROM pg_stats"),
            ("mysql", "SELECT * FROM mysql.user"),
            ("spark", "SELECT * FROM text.`/etc/passwd`"),
            ("datafusion", "SELECT * FROM 'secrets.csv'"),
        ],
    );
    // A CTE of that name is not the table.
    let review = review(
        "WITH secret AS (SELECT 1 AS pw) SELECT pw FROM secret",
        &Context { schema: None, dialect: &querymend_sql::dialect::POSTGRES, policy: &policy, question: None },
    );
    assert_eq!(review.verdict(), Verdict::Approved, "{:?}", review.findings);
}

#[test]
fn c01_what_is_sent_is_what_was_reviewed() {
    let policy = Policy::default();
    for text in [
        "{\"sql\": \"SELECT '\\' || ' , (SELECT pw FROM secret) -- '; hello there\"}",
        "```sql\nSELECT a /* x */ FROM t -- y\n```",
        "SELECT 'it\\'s' FROM t;",
        "Here: SELECT a\\_b FROM t WHERE c = 'O'Brien';\n\nDone",
    ] {
        let review = review(
            text,
            &Context { schema: None, dialect: &querymend_sql::dialect::SQLITE, policy: &policy, question: None },
        );
        if let Ok(approved) = review.approve() {
            let reviewed = &review.extracted.sql;
            assert!(
                querymend_sql::diff::same(approved.sql(), reviewed, &querymend_sql::dialect::SQLITE),
                "{reviewed} / {}",
                approved.sql()
            );
        }
    }
}

/// What does not parse may be mended, but never into something that hides a write, or one of several statements.
#[test]
fn c01_nothing_is_mended_into_a_question_that_was_none() {
    let policy = Policy::default();
    for (name, sql) in [
        ("sqlite", "DELETE FROM t WHERE (a = 1"),
        ("sqlite", "DELETE FROM t WHERE a = 1)"),
        ("sqlite", "SELECT a, FROM t; DROP TABLE t"),
        ("sqlite", "SELECT a FROM t WHERE (b = 1; DROP TABLE t"),
        ("sqlite", "SELECT a FROM t WHERE b = 1 AND; DELETE FROM t"),
        ("sqlite", "SELECT a FROM t LIMIT 5 WHERE b = 1; DELETE FROM t"),
        ("sqlite", "SELECT a FORM t; SELECT b FROM u"),
        ("postgres", "WITH x AS (DELETE FROM t RETURNING *) SELECT a, FROM x"),
        ("postgres", "WITH x AS (DELETE FROM t RETURNING *) SELECT a FROM x LIMIT 5 WHERE b = 1"),
        ("postgres", "SELECT a INTO b FROM t LIMIT 5 WHERE c = 1"),
        ("postgres", "SELECT a FROM t LIMIT 5 WHERE c = pg_sleep(10)"),
        ("postgres", "SELECT a FROM t LIMIT 5 WHERE c = 1 FOR UPDATE"),
        ("postgres", "SELECT (pg_sleep(10), 2 AS b FROM t"),
        ("postgres", "SELECT a FROM t WHERE b = 1 WHERE c = (SELECT nextval('s'))"),
        ("postgres", "UPDATE t SET a = (SELECT b, FROM u)"),
        ("mysql", "SELECT a, FROM t INTO OUTFILE '/tmp/x'"),
        ("mysql", "SELECT (COUNT(a) WHERE SLEEP(5)) FROM t"),
    ] {
        let dialect = Dialect::named(name).unwrap_or_else(|| panic!("{name}"));
        let context = Context { schema: None, dialect, policy: &policy, question: None };
        let apply = Applicability::Suggested;
        let repair = repair(&Request { text: sql, context, question: None, apply, error: None }, None);
        assert_ne!(repair.status, Status::Mended, "{name}: {sql}\nbecame {}", repair.sql);
        let review = review(&repair.sql, &context);
        assert_eq!(review.verdict(), Verdict::Refused, "{name}: {sql}\nbecame {}", repair.sql);
    }
}

#[test]
fn c01_functions_that_are_called_like_fields() {
    refused(
        &Policy::default(),
        &[
            ("postgres", "SELECT (1::bigint).pg_advisory_lock"),
            ("postgres", "SELECT (0.2::float8).pg_sleep"),
            ("postgres", "SELECT ('/etc/passwd'::text).pg_read_file"),
            ("postgres", "SELECT (pid).pg_terminate_backend FROM t"),
            ("postgres", "SELECT x.\"pg_read_file\" FROM (SELECT '/etc/passwd'::text) AS x"),
        ],
    );
    let deny = Policy { deny_functions: vec!["upper".into()], ..Policy::default() };
    refused(&deny, &[("postgres", "SELECT ('a'::text).upper"), ("postgres", "SELECT x.upper FROM current_user AS x")]);
}
