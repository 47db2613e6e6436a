//! C01: statements that would do more than read, or that an engine would read differently from our parser. Each was found by
//! somebody who tried to get past the guard, many on a real server; none may be approved.

use querymend_sql::{
    Applicability, Dialect, Policy, RepairRequest, RepairStatus, ReviewContext, Schema, Verdict, repair, review,
};

#[track_caller]
fn refused(policy: &Policy, lines: &[(&str, &str)]) {
    for (name, sql) in lines {
        let dialect = Dialect::from_name(name).unwrap_or_else(|| panic!("{name}"));
        let review = review(sql, &ReviewContext { schema: None, dialect, policy, question: None });
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
fn refuses_statements_other_than_read_only_queries() {
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
fn refuses_dangerous_functions_in_every_position() {
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
fn refuses_text_that_engines_parse_differently() {
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
fn refuses_denied_tables_in_every_position() {
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
        &ReviewContext { schema: None, dialect: &querymend_sql::dialect::POSTGRES, policy: &policy, question: None },
    );
    assert_eq!(review.verdict(), Verdict::Approved, "{:?}", review.findings);
}

#[test]
fn approves_exactly_the_reviewed_sql() {
    let policy = Policy::default();
    for text in [
        "{\"sql\": \"SELECT '\\' || ' , (SELECT pw FROM secret) -- '; hello there\"}",
        "```sql\nSELECT a /* x */ FROM t -- y\n```",
        "SELECT 'it\\'s' FROM t;",
        "Here: SELECT a\\_b FROM t WHERE c = 'O'Brien';\n\nDone",
    ] {
        let review = review(
            text,
            &ReviewContext { schema: None, dialect: &querymend_sql::dialect::SQLITE, policy: &policy, question: None },
        );
        if let Ok(approved) = review.approve() {
            let reviewed = &review.references.sql;
            assert!(
                querymend_sql::diff::is_same_query(approved.sql(), reviewed, &querymend_sql::dialect::SQLITE),
                "{reviewed} / {}",
                approved.sql()
            );
        }
    }
    // What stands before a semicolon is a statement to some engines, even if it is nothing.
    for text in [";SELECT 1", " ; ; /* x */ ; SELECT 1 ; -- y", "-- x\n; SELECT 1;;"] {
        for dialect in querymend_sql::dialect::DIALECTS {
            let review = review(text, &ReviewContext { schema: None, dialect, policy: &policy, question: None });
            assert_eq!(review.approve().unwrap().sql(), "SELECT 1", "{}: {text}", dialect.name);
        }
    }
}

/// What does not parse may be mended, but never into something that hides a write, or one of several statements.
#[test]
fn never_repairs_unsafe_text_into_an_approved_query() {
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
        let dialect = Dialect::from_name(name).unwrap_or_else(|| panic!("{name}"));
        let context = ReviewContext { schema: None, dialect, policy: &policy, question: None };
        let apply = Applicability::Suggested;
        let repair =
            repair(&RepairRequest { text: sql, context, question: None, max_applicability: apply, error: None }, None);
        assert_ne!(repair.status, RepairStatus::Mended, "{name}: {sql}\nbecame {}", repair.sql);
        let review = review(&repair.sql, &context);
        assert_eq!(review.verdict(), Verdict::Refused, "{name}: {sql}\nbecame {}", repair.sql);
    }
}

#[test]
fn refuses_functions_called_in_attribute_notation() {
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

/// Found by `crates/engine/tests/integration/attacks` on a real server: a function that writes, called as if it were a column.
#[test]
fn refuses_user_defined_operators_and_attribute_functions() {
    refused(
        &Policy::default(),
        &[
            ("postgres", "SELECT 1 OPERATOR(public.@@@@) 2"),
            ("postgres", "SELECT 1 operator ( \"public\" . + ) 2"),
            ("postgres", "SELECT a FROM t ORDER BY a USING OPERATOR(public.<)"),
            ("postgres", "SELECT array_agg(a ORDER BY a USING OPERATOR(public.<)) FROM t"),
        ],
    );
    let policy = Policy::default();
    let dialect = &querymend_sql::dialect::POSTGRES;
    let tables = "CREATE TABLE canary (id INTEGER PRIMARY KEY, song TEXT); CREATE TABLE choir (song TEXT, sing TEXT);";
    let schema = Schema::from_ddl(tables, dialect).unwrap();
    let schema = schema.with_attribute_style_functions(vec!["Sing".into(), "@@@@".into()]);
    let hidden = schema.without_tables(|table| table.name == "choir");
    for (sql, verdict) in [
        ("SELECT canary.sing FROM canary", Verdict::Refused),
        ("SELECT c.SING FROM canary c", Verdict::Refused),
        ("SELECT (c).sing FROM canary c", Verdict::Refused),
        ("SELECT public.canary.sing FROM canary", Verdict::Refused),
        ("SELECT id FROM canary c ORDER BY c.sing", Verdict::Refused),
        ("SELECT ('x'::text).sing", Verdict::Refused),
        ("SELECT x.sing FROM (SELECT 1 AS one) AS x", Verdict::Refused),
        ("SELECT 1 @@@@ 2", Verdict::Refused),
        ("SELECT 1@@@@2", Verdict::Refused),
        ("SELECT 1 @@@@-2", Verdict::Refused),
        ("SELECT 1 OPERATOR(@@@@) 2", Verdict::Refused),
        ("SELECT '@@@@', 1 AS \"@@@@\", to_tsvector('x') @@ 'x'::tsquery", Verdict::Approved),
        ("SELECT 1 OPERATOR(pg_catalog.+) 2", Verdict::Approved),
        ("SELECT c.song FROM canary c", Verdict::Approved),
        ("SELECT x.sing FROM (SELECT 1 AS sing) AS x", Verdict::Approved),
        // It is not there, which is a fault and no danger.
        ("SELECT c.sang FROM canary c", Verdict::Approved),
    ] {
        for schema in [&schema, &hidden] {
            let review = review(sql, &ReviewContext { schema: Some(schema), dialect, policy: &policy, question: None });
            assert_eq!(review.verdict(), verdict, "{sql}: {:?}", review.findings);
        }
    }
    let own = "SELECT choir.sing FROM choir";
    let review = review(own, &ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None });
    assert_eq!(review.verdict(), Verdict::Approved, "{:?}", review.findings);
}

#[test]
fn refuses_session_monitoring_views_and_code_loading() {
    refused(
        &Policy::default(),
        &[
            ("mysql", "SELECT * FROM sys.session"),
            ("mysql", "SELECT current_statement FROM `sys`.`processlist`"),
            ("mysql", "SELECT * FROM sys.x$statement_analysis"),
            ("mysql", "SELECT trx_query FROM information_schema.INNODB_TRX"),
            ("postgres", "SELECT decrypted_secret FROM vault.decrypted_secrets"),
            ("sqlite", "SELECT icu_load_collation('a', 'b')"),
        ],
    );
}

/// What emptied databases behind a server that was told to only read: the transaction that kept it from writing is ended first.
#[test]
fn refuses_commit_followed_by_drop_schema() {
    for dialect in querymend_sql::dialect::DIALECTS {
        for sql in [
            "COMMIT; DROP SCHEMA public CASCADE;",
            "COMMIT; DROP SCHEMA public CASCADE",
            "SELECT 1; COMMIT; DROP SCHEMA public CASCADE;",
            "ROLLBACK; DROP TABLE canary",
            "END; DROP DATABASE app",
        ] {
            refused(&Policy::default(), &[(dialect.name, sql)]);
        }
    }
}

const STAFF: &str =
    "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, dept_id INTEGER, bonus INTEGER, salary INTEGER);
    CREATE TABLE dept (id INTEGER PRIMARY KEY, name TEXT, budget INTEGER);
    CREATE TABLE offers (id INTEGER PRIMARY KEY, title TEXT, salary INTEGER);";

/// Every query with the whole schema, with the one that a model is shown, and with none.
#[track_caller]
fn with_hidden_columns(policy: &Policy, lines: &[(&str, &str)], verdict: Verdict, without_schema: bool) {
    let mut wrong = String::new();
    for (name, sql) in lines {
        let dialect = Dialect::from_name(name).unwrap_or_else(|| panic!("{name}"));
        let whole = Schema::from_ddl(STAFF, dialect).unwrap().with_functions(Vec::new());
        let shown = policy.filter_schema(whole.clone());
        for (what, schema) in [("whole", Some(&whole)), ("shown", Some(&shown)), ("no", None)] {
            if schema.is_none() && !without_schema {
                continue;
            }
            let review = review(sql, &ReviewContext { schema, dialect, policy, question: None });
            // Refused for what it shows, unless our parser does not know the form at all.
            let told = review.findings.iter().any(|f| f.code.starts_with("protected-"));
            let broken = review.findings.iter().any(|f| f.code == "syntax-error");
            if review.verdict() != verdict || (told || broken) != (verdict == Verdict::Refused) {
                wrong.push_str(&format!("{name}, {what} schema: {sql}\n    {:?}\n", review.findings));
            }
        }
    }
    assert!(wrong.is_empty(), "not {verdict:?}:\n{wrong}");
}

#[test]
fn refuses_denied_columns_in_every_position() {
    let policy = Policy { deny_columns: vec!["staff.salary".into()], ..Policy::default() };
    let places = [
        "SELECT {} FROM staff",
        "SELECT max({}) FROM staff",
        "SELECT name FROM staff WHERE {} > 5000",
        "SELECT name FROM staff ORDER BY {}",
        "SELECT name FROM staff ORDER BY -{}",
        "SELECT count(*) FROM staff GROUP BY {}",
        "SELECT dept_id FROM staff GROUP BY dept_id HAVING max({}) > 1",
        "SELECT name, rank() OVER (ORDER BY {}) FROM staff",
        "SELECT CASE WHEN {} > 1 THEN 1 ELSE 0 END FROM staff",
        "SELECT name FROM staff JOIN dept ON {} > budget",
        "SELECT name FROM dept WHERE budget < (SELECT max({}) FROM staff)",
        "SELECT name FROM dept d WHERE EXISTS (SELECT 1 FROM staff WHERE {} > d.budget)",
        "SELECT (SELECT {} LIMIT 1) FROM staff",
        "WITH x AS (SELECT name, {} FROM staff) SELECT name FROM x",
        "SELECT x.name FROM (SELECT name, {} AS p FROM staff) AS x",
        "SELECT name FROM dept UNION SELECT {} FROM staff",
        "SELECT name FROM staff WHERE 1 IN (SELECT 1 FROM dept WHERE budget = {})",
        "SELECT name AS salary FROM staff WHERE {} > 1",
        "SELECT name FROM staff LIMIT (SELECT max({}) FROM staff)",
        "SELECT name FROM staff WHERE {} IS NULL OR {} BETWEEN 1 AND 2",
    ];
    for place in places {
        for name in ["salary", "SALARY", "staff.salary", "\"salary\""] {
            let sql = place.replace("{}", name);
            with_hidden_columns(&policy, &[("sqlite", &sql), ("postgres", &sql)], Verdict::Refused, true);
        }
        let sql = place.replace("{}", "`salary`");
        with_hidden_columns(&policy, &[("mysql", &sql), ("spark", &sql), ("hive", &sql)], Verdict::Refused, true);
    }
    with_hidden_columns(
        &policy,
        &[
            ("sqlite", "SELECT * FROM staff"),
            ("sqlite", "SELECT staff.* FROM staff"),
            ("sqlite", "SELECT main.staff.* FROM main.staff"),
            ("sqlite", "SELECT s.* FROM STAFF AS s"),
            ("sqlite", "SELECT d.name, s.* FROM dept d JOIN staff s ON s.dept_id = d.id"),
            ("sqlite", "SELECT * FROM dept d JOIN staff s ON s.dept_id = d.id"),
            ("sqlite", "SELECT name FROM dept WHERE EXISTS (SELECT * FROM staff)"),
            ("sqlite", "SELECT name FROM (SELECT * FROM staff) AS x"),
            ("sqlite", "WITH staff AS (SELECT * FROM staff) SELECT name FROM staff"),
            ("sqlite", "WITH x (a, b, c, d, e) AS (SELECT * FROM staff) SELECT e FROM x"),
            ("sqlite", "SELECT id, name, dept_id, bonus, 1 FROM staff UNION ALL SELECT * FROM staff ORDER BY 5"),
            ("sqlite", "SELECT name FROM staff NATURAL JOIN offers"),
            ("sqlite", "SELECT offers.title FROM offers JOIN staff USING (salary)"),
            ("sqlite", "SELECT offers.title FROM offers JOIN staff USING ('salary')"),
            ("sqlite", "SELECT staff.'salary' FROM staff"),
            ("sqlite", "SELECT [salary] FROM staff"),
            ("sqlite", "SELECT salary FROM offers, staff"),
            ("sqlite", "SELECT name FROM staff WHERE staff MATCH 'salary:5'"),
            ("sqlite", "SELECT sql FROM sqlite_master"),
            ("sqlite", "SELECT count(DISTINCT salary) FROM staff"),
            ("sqlite", "SELECT json_group_array(s.salary) FROM staff s"),
            ("postgres", "SELECT staff FROM staff"),
            ("postgres", "SELECT s FROM staff s"),
            ("postgres", "SELECT \"s\" FROM staff AS s"),
            ("postgres", "SELECT public.staff FROM public.staff"),
            ("postgres", "SELECT row_to_json(s) FROM staff s"),
            ("postgres", "SELECT to_jsonb(s.*) FROM staff s"),
            ("postgres", "SELECT to_jsonb(s) ->> 'salary' FROM staff s"),
            ("postgres", "SELECT s::text FROM staff s"),
            ("postgres", "SELECT (s).salary FROM staff s"),
            ("postgres", "SELECT (s.*)::text FROM staff s"),
            ("postgres", "SELECT (s).* FROM staff s"),
            ("postgres", "SELECT ROW(s.*) FROM staff s"),
            ("postgres", "SELECT count(s) FROM staff s"),
            ("postgres", "SELECT count(s.*) FROM staff s"),
            ("postgres", "SELECT max(s::text) FROM staff s"),
            ("postgres", "SELECT salary(s) FROM staff s"),
            ("postgres", "SELECT s.to_json FROM staff s"),
            ("postgres", "SELECT s.row_to_json FROM staff s"),
            ("postgres", "SELECT name FROM staff s ORDER BY s"),
            ("postgres", "SELECT name FROM staff s WHERE s > ROW(1, 'a', 2, 3, 4)"),
            ("postgres", "SELECT x.name FROM staff s, LATERAL (SELECT s.*) x"),
            ("postgres", "SELECT x.y FROM staff s, LATERAL (SELECT s AS y) x"),
            ("postgres", "SELECT x FROM staff s, LATERAL (SELECT s.salary) x"),
            ("postgres", "SELECT j.salary FROM (staff JOIN dept ON dept.id = staff.dept_id) AS j"),
            ("postgres", "SELECT j FROM (staff JOIN dept ON dept.id = staff.dept_id) AS j"),
            ("postgres", "SELECT a FROM staff AS s (a, b, c, d, e)"),
            ("postgres", "SELECT e FROM staff AS s (a, b, c, d, e)"),
            ("postgres", "SELECT DISTINCT ON (salary) name FROM staff"),
            ("postgres", "SELECT array_agg(name ORDER BY salary) FROM staff"),
            ("postgres", "SELECT count(*) FILTER (WHERE salary > 1) FROM staff"),
            ("postgres", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) FROM staff"),
            ("postgres", "SELECT name FROM staff WINDOW w AS (ORDER BY salary)"),
            ("postgres", "SELECT 1 UNION TABLE staff"),
            ("postgres", "TABLE staff"),
            ("postgres", "SELECT name FROM dept GROUP BY ROLLUP ((SELECT max(salary) FROM staff))"),
            ("postgres", "SELECT name FROM dept TABLESAMPLE SYSTEM ((SELECT max(salary) FROM staff))"),
            ("postgres", "EXPLAIN SELECT name FROM staff WHERE salary > 1"),
            ("mysql", "SELECT name FROM staff WHERE \"salary\" > 1"),
            ("mysql", "SELECT name FROM staff USE INDEX (by_pay) LIMIT 1"),
            ("mysql", "SELECT name FROM staff PARTITION (rich)"),
            ("mysql", "SELECT name FROM staff WHERE MATCH (salary) AGAINST ('5')"),
            ("mysql", "SELECT hr.staff.salary FROM hr.staff"),
            ("mysql", "SELECT * FROM staff LIMIT 1"),
            ("spark", "SELECT struct(*) FROM staff"),
            ("spark", "SELECT hash(*) FROM staff"),
            ("spark", "SELECT concat_ws(',', s.*) FROM staff s"),
            ("spark", "SELECT to_json(struct(s.*)) FROM staff s"),
            ("spark", "SELECT * EXCEPT (salary) FROM staff"),
            ("spark", "SELECT `(id|name)?+.+` FROM staff"),
            ("spark", "SELECT * FROM staff PIVOT (max(bonus) FOR name IN ('a'))"),
            ("spark", "SELECT count(DISTINCT *) FROM staff"),
            ("hive", "SELECT `.*` FROM staff"),
            ("hive", "FROM staff SELECT *"),
            ("hive", "FROM staff SELECT salary"),
            ("trino", "SELECT CAST(ROW(s.*) AS JSON) FROM staff s"),
            ("trino", "SELECT * FROM TABLE(exclude_columns(input => TABLE(staff), columns => DESCRIPTOR(name)))"),
            ("trino", "SELECT data FROM \"staff$partitions\""),
            ("trino", "SELECT lower_bounds FROM hr.\"staff$files\""),
            ("spark", "SELECT lower_bounds FROM hr.staff.files"),
            ("datafusion", "SELECT * EXCLUDE (salary) FROM staff"),
            ("datafusion", "SELECT name FROM staff |> EXTEND salary AS z"),
            ("datafusion", "FROM staff"),
        ],
        Verdict::Refused,
        true,
    );
    let key = Policy { deny_columns: vec!["staff.id".into()], ..Policy::default() };
    with_hidden_columns(
        &key,
        &[
            ("sqlite", "SELECT rowid FROM staff"),
            ("sqlite", "SELECT s.OID FROM staff s"),
            ("sqlite", "SELECT name FROM staff ORDER BY _rowid_"),
            ("mysql", "SELECT _rowid FROM staff"),
            ("sqlite", "SELECT name FROM staff JOIN dept USING (id)"),
        ],
        Verdict::Refused,
        true,
    );
    let every = Policy { deny_columns: vec!["*.salary".into()], ..Policy::default() };
    let lines = [
        ("sqlite", "SELECT * FROM staff"),
        ("postgres", "SELECT o FROM offers o"),
        ("mysql", "SELECT Salary FROM offers"),
    ];
    with_hidden_columns(&every, &lines, Verdict::Refused, true);
    // What nobody can read hides everything.
    let wrong = Policy { deny_columns: vec!["salary".into()], ..Policy::default() };
    with_hidden_columns(&wrong, &[("sqlite", "SELECT name FROM dept")], Verdict::Refused, true);
    let unknown = Policy { deny_columns: vec!["boats.crew".into()], ..Policy::default() };
    with_hidden_columns(
        &unknown,
        &[("sqlite", "SELECT * FROM boats"), ("sqlite", "SELECT crew FROM boats")],
        Verdict::Refused,
        true,
    );
}

#[test]
fn approves_other_columns_of_a_table_with_denied_ones() {
    let policy = Policy { deny_columns: vec!["staff.salary".into()], ..Policy::default() };
    let plain = [
        "SELECT name FROM staff",
        "SELECT count(*) FROM staff",
        "SELECT s.name, s.bonus * 2 AS twice FROM staff s WHERE s.bonus > 5 ORDER BY s.bonus * 3",
        "SELECT d.name, count(*) AS n FROM staff s JOIN dept d ON d.id = s.dept_id GROUP BY d.name ORDER BY n",
        "SELECT d.* FROM dept d JOIN staff s ON s.dept_id = d.id",
        "SELECT * FROM dept WHERE id IN (SELECT dept_id FROM staff WHERE bonus > 1)",
        "WITH x AS (SELECT name, bonus FROM staff) SELECT * FROM x",
        "WITH x AS (SELECT name, bonus AS salary FROM staff) SELECT salary FROM x ORDER BY salary",
        "SELECT x.* FROM (SELECT name, max(bonus) AS b FROM staff GROUP BY name) AS x",
        "SELECT bonus AS salary FROM staff",
        "SELECT o.salary FROM offers o JOIN staff s ON s.id = o.id",
        "SELECT salary FROM offers",
        "SELECT * FROM offers",
        "SELECT title FROM offers WHERE salary > (SELECT max(bonus) FROM staff)",
        "SELECT name FROM staff WHERE name = 'salary'",
        "SELECT staff.name FROM staff",
        "SELECT name FROM dept UNION SELECT name FROM staff ORDER BY name",
        "SELECT d.name FROM dept d WHERE EXISTS (SELECT 1 FROM staff s WHERE s.dept_id = d.id)",
        "SELECT name, rank() OVER (PARTITION BY dept_id ORDER BY bonus) FROM staff",
        "WITH staff AS (SELECT 1 AS salary) SELECT salary FROM staff",
    ];
    for sql in plain {
        let lines = ["sqlite", "postgres", "mysql", "spark", "trino"].map(|dialect| (dialect, sql));
        with_hidden_columns(&policy, &lines, Verdict::Approved, false);
    }
    with_hidden_columns(
        &policy,
        &[
            ("sqlite", "SELECT rowid, name FROM staff"),
            ("postgres", "SELECT x FROM (SELECT name FROM staff) AS x"),
            ("postgres", "SELECT to_json(d) FROM dept d JOIN staff s ON s.dept_id = d.id"),
        ],
        Verdict::Approved,
        false,
    );
    let every = Policy { deny_columns: vec!["*.salary".into()], ..Policy::default() };
    with_hidden_columns(
        &every,
        &[("sqlite", "SELECT * FROM dept"), ("sqlite", "SELECT name FROM staff")],
        Verdict::Approved,
        false,
    );
}

/// A hidden column is not taken for a misspelt one: another that is spelled alike would be another question.
#[test]
fn never_repairs_denied_columns_into_similar_ones() {
    let policy = Policy { deny_columns: vec!["staff.salary".into()], ..Policy::default() };
    let ddl =
        "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER, salary_band INTEGER, salery INTEGER)";
    let dialect = &querymend_sql::dialect::SQLITE;
    let shown = policy.filter_schema(Schema::from_ddl(ddl, dialect).unwrap());
    let context = ReviewContext { schema: Some(&shown), dialect, policy: &policy, question: None };
    for text in ["SELECT salary FROM staff", "SELECT * FROM staff", "SELECT name FROM staff WHERE salary > 1"] {
        let apply = Applicability::Suggested;
        let repair =
            repair(&RepairRequest { text, context, question: None, max_applicability: apply, error: None }, None);
        assert_ne!(repair.status, RepairStatus::Mended, "{text}\nbecame {}", repair.sql);
        assert_eq!(repair.sql, text);
    }
}

/// Nor is a table that may not be read, or a file that is asked for like one.
#[test]
fn never_repairs_denied_tables_into_similar_ones() {
    let policy = Policy { deny_tables: vec!["staffs".into()], ..Policy::default() };
    let dialect = &querymend_sql::dialect::SQLITE;
    let ddl = "CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE staffs (id INTEGER, name TEXT)";
    let shown = policy.filter_schema(Schema::from_ddl(ddl, dialect).unwrap());
    let context = ReviewContext { schema: Some(&shown), dialect, policy: &policy, question: None };
    for text in ["SELECT name FROM staffs", "SELECT name FROM `/etc/staff`"] {
        let apply = Applicability::Suggested;
        let repair =
            repair(&RepairRequest { text, context, question: None, max_applicability: apply, error: None }, None);
        assert_ne!(repair.status, RepairStatus::Mended, "{text}\nbecame {}", repair.sql);
        assert_eq!(repair.sql, text);
    }
    // A name that is merely not on the list of those that may be read is a wrong name.
    let policy = Policy { allow_tables: Some(vec!["staff".into()]), ..Policy::default() };
    let context = ReviewContext { policy: &policy, ..context };
    let text = "SELECT name FROM staf";
    let repair = repair(
        &RepairRequest { text, context, question: None, max_applicability: Applicability::Likely, error: None },
        None,
    );
    assert_eq!((repair.status, repair.sql.as_str()), (RepairStatus::Mended, "SELECT name FROM staff"));
}
