//! Texts made of others without any knowledge of a grammar: pieces are put in where nobody expects them.

/// Random numbers that are the same at every run (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % end.max(1) as u64) as usize
    }

    pub fn one<'a>(&mut self, of: &'a [impl AsRef<str>]) -> &'a str {
        of[self.below(of.len())].as_ref()
    }
}

/// Comments, and what looks like them.
const COMMENTS: &[&str] = &[
    "/* x */",
    "/* /* */",
    "/* /* x */ */",
    "/*! , 1 */",
    "/*!50000 UNION SELECT 1, 'x' */",
    "/*M! , 1 */",
    "/*!999999 x */",
    "/*+ SET_VAR(sql_mode='ANSI_QUOTES') */",
    "/*+ x",
    "/*",
    "*/",
    "/**/",
    "/*/ x /*/",
    "--x\n",
    "-- x\n",
    "--\n",
    "--\r",
    "-- x\r, 2\n",
    "--\u{a0}x\n",
    "--'\n",
    "--",
    "#",
    "# x\n",
    "#'\n",
    "//",
    "/* ' */",
    "/* \" */",
    "{- x -}",
    "<!-- x -->",
];

/// Blanks of all kinds, some of which are none to some readers.
const BLANKS: &[&str] = &[
    "\t", "\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{1680}", "\u{2000}", "\u{2003}", "\u{200a}",
    "\u{200b}", "\u{200d}", "\u{2028}", "\u{2029}", "\u{202e}", "\u{202f}", "\u{205f}", "\u{2060}", "\u{3000}",
    "\u{feff}", "\0", "\u{1a}", "\u{1f}", "\u{8}", "\u{7f}", "\u{ad}", "\u{180e}", "+", "",
];

/// Texts in quotes, the way that one dialect or another writes them, and some that never end.
const LITERALS: &[&str] = &[
    "'x'",
    "'it''s'",
    "'\\'",
    "'\\''",
    "'\\\\'",
    "'\\\\\\'",
    "''",
    "''''",
    "'''",
    "\"x\"",
    "\"a\"\"b\"",
    "\"\\\"\"",
    "\"\\\"",
    "`x`",
    "`a``b`",
    "`\\`",
    "[x]",
    "[a]]b]",
    "E'x'",
    "E'\\''",
    "e'\\\\'",
    "E'a' 'b'",
    "U&'\\0041'",
    "U&\"\\0041\"",
    "u&'!0041' UESCAPE '!'",
    "N'x'",
    "n'\\'",
    "X'41'",
    "x'4'",
    "B'101'",
    "b'\\'",
    "0x41",
    "$$x$$",
    "$$;$$",
    "$a$'$a$",
    "$a$ $b$ $a$",
    "$1",
    "$$",
    "q'[x]'",
    "Q'{'}'",
    "nq'!x!'",
    "r'\\'",
    "R\"\\\"",
    "r'x'",
    "'a' 'b'",
    "'a'\n'b'",
    "'a'\n'\\'",
    "'a'\"b\"",
    "_utf8'x'",
    "_binary'\\'",
    "_latin1 0x27",
    "@x",
    "@@version",
    "@'x'",
    ":x",
    ":'x'",
    "?",
    "?1",
    "{d '2020-01-01'}",
    "{fn now()}",
    "${x}",
    "'${x}'",
    "'''x'''",
    "\"\"\"x\"\"\"",
    "'\u{2019}'",
    "\u{2018}x\u{2019}",
    "\u{201c}x\u{201d}",
    "'\0'",
    "'\u{ff07}'",
    "\u{ff02}x\u{ff02}",
];

/// What may stand before a whole text.
const BEFORE: &[&str] = &[
    "COMMIT; ",
    "END; ",
    "BEGIN; ",
    "ROLLBACK; ",
    "; ",
    ";",
    "BEGIN NOT ATOMIC ",
    "EXPLAIN ",
    "EXPLAIN ANALYZE ",
    "EXPLAIN EXPLAIN ",
    "EXPLAIN (ANALYZE, BUFFERS) ",
    "EXPLAIN QUERY PLAN ",
    "EXPLAIN FORMAT=JSON ",
    "EXPLAIN EXTENDED ",
    "ANALYZE ",
    "DESCRIBE ",
    "SET STATEMENT max_statement_time=1 FOR ",
    "WITH x AS (INSERT INTO canary VALUES (9, 'x') RETURNING *) ",
    "WITH x AS (SELECT 1) ",
    "WITH FUNCTION f() RETURNS INT RETURN 1 ",
    "CREATE TABLE stolen AS ",
    "INSERT INTO canary ",
    "CREATE VIEW stolen AS ",
    "DECLARE c CURSOR FOR ",
    "PREPARE p AS ",
    "PREPARE p FROM ",
    "COPY (",
    "(",
    "((",
    "SELECT * FROM (",
    "CALL ",
    "DO ",
    "HANDLER ",
    "DELIMITER //\n",
    "\\! ",
    ".read ",
    "FROM canary ",
    "TABLE canary; ",
    "CACHE TABLE stolen AS ",
    "SELECT 1; ",
    "SELECT 1 UNION ",
    "EXECUTE IMMEDIATE '",
    "```sql\n",
    "Here is the query:\n\n",
    "{\"sql\": \"",
    "\u{feff}",
    "SELECT 1 END ",
];

/// What may stand behind it.
const BEHIND: &[&str] = &[
    ";",
    ";;",
    "; --",
    "; COMMIT",
    "; DROP TABLE canary",
    ";\0DROP TABLE canary",
    "; DELETE FROM canary; --",
    "\n;\nDELETE FROM canary",
    " FOR UPDATE",
    " FOR SHARE",
    " FOR NO KEY UPDATE",
    " FOR UPDATE SKIP LOCKED",
    " LOCK IN SHARE MODE",
    " INTO OUTFILE '{file}'",
    " INTO DUMPFILE '{file}'",
    " INTO @x",
    " INTO stolen",
    " INTO TEMP stolen",
    " PROCEDURE ANALYSE()",
    " PROCEDURE ANALYSE(1, 1)",
    ")",
    "))",
    ") x",
    ") TO '{file}'",
    ") TO PROGRAM 'touch {file}'",
    " END",
    " END; DROP TABLE canary",
    "//",
    "\\g",
    "\\G DROP TABLE canary",
    "\nGO\nDROP TABLE canary",
    " UNION SELECT 1, load_file('{secret}')",
    " UNION SELECT 1, pg_read_file('{secret}')",
    " UNION ALL SELECT 1, 'x' INTO OUTFILE '{file}'",
    " RETURNING *",
    " LIMIT 1",
    " LIMIT ALL",
    " OFFSET 0",
    " LIMIT 1, 1",
    " FETCH FIRST 1 ROW ONLY",
    " |> SELECT *",
    " |> DROP song",
    " FORMAT JSON",
    " SETTINGS max_threads = 1",
    " OPTION (RECOMPILE)",
    " WITH UR",
    " FINAL",
    " SAMPLE 0.1",
    " '",
    " \"",
    " `",
    "'",
    "\\",
    " /*",
    " --",
    " #",
    "';",
    " FOR SYSTEM_TIME ALL",
    " AS OF 1",
    " WINDOW w AS ()",
    " QUALIFY true",
    "\n```\nThat is all.",
    "\"}",
    " $$",
    "'",
    " ON CONFLICT DO NOTHING",
    " WAIT 1",
    " NOWAIT",
];

/// What may stand between two words.
const BETWEEN: &[&str] = &[
    ",",
    ";",
    "(",
    ")",
    "*",
    ".",
    "::",
    "||",
    "|>",
    ":=",
    "=>",
    "->",
    "->>",
    "@>",
    "#>",
    "<@",
    "--1",
    "- -1",
    "-",
    "~",
    "!",
    "&&",
    "[1]",
    "{",
    "}",
    "AS",
    "FROM",
    "SELECT",
    "UNION",
    "VALUES",
    "TABLE",
    "LATERAL",
    "WITH",
    "INTO",
    "INTO stolen",
    "INTO @x",
    "END",
    "BEGIN",
    "NOT",
    "NULL",
    "DISTINCT",
    "ALL",
    "ONLY",
    "PIVOT (count(*) FOR song IN ('x'))",
    "TABLESAMPLE SYSTEM (1)",
    "USING",
    "OVER ()",
    ", (DELETE FROM canary RETURNING 1)",
    ", (SELECT 1 INTO @x)",
    ", @x := 1",
    ", nextval('s')",
    ", pg_sleep(9)",
    ", sleep(9)",
    ", load_file('{secret}')",
    ", readfile('{secret}')",
    ", writefile('{file}', 'x')",
    ", pg_read_file('{secret}')",
    ", lo_export(1, '{file}')",
    ", reflect('java.lang.System', 'exit', 1)",
    ", U&\"pg\\005fsleep\"(9)",
    ", setval('s', 1)",
    ", set_config('work_mem', '64kB', false)",
    ", load_extension('{file}')",
    ", canary.sing",
    ", sing(1)",
    ", get_lock('x', 1)",
    ", (SELECT 1 FROM canary FOR UPDATE)",
    "OPERATOR(pg_catalog.+)",
    "COLLATE \"C\"",
    "AT TIME ZONE 'UTC'",
    "ESCAPE '\\'",
    "DIV",
    "IS DISTINCT FROM",
    "SIMILAR TO",
    "RLIKE",
    "GLOB",
    "MATCH",
    "BINARY",
    "INTERVAL '1' DAY",
    "DATE '2020-01-01'",
    "CAST(1 AS TEXT)",
    ", CAST('canary' AS regclass)",
    ", 'canary'::regclass",
    ", XMLPARSE(DOCUMENT '<!DOCTYPE a [<!ENTITY x SYSTEM \"file://{secret}\">]><a>&x;</a>')",
    ", xpath('<!DOCTYPE a [<!ENTITY x SYSTEM \"file://{secret}\">]><a>&x;</a>', '/a')",
    ", xpath_string('<!DOCTYPE a [<!ENTITY x SYSTEM \"file://{secret}\">]><a>&x;</a>', 'a')",
];

/// Letters that turn into others when their case is changed, or that only look like them.
const LOOK_ALIKES: &[(char, &[&str])] = &[
    ('s', &["\u{17f}", "\u{ff53}", "\u{455}"]),
    ('k', &["\u{212a}", "\u{ff4b}"]),
    ('i', &["\u{131}", "\u{130}", "\u{456}"]),
    ('e', &["\u{435}", "\u{ff45}", "e\u{301}"]),
    ('a', &["\u{430}", "\u{ff41}", "\u{e5}"]),
    ('o', &["\u{3bf}", "\u{43e}"]),
    (';', &["\u{37e}", "\u{ff1b}"]),
    ('-', &["\u{2010}", "\u{2212}", "\u{ff0d}"]),
    ('*', &["\u{2217}", "\u{ff0a}"]),
    ('(', &["\u{ff08}"]),
    (',', &["\u{ff0c}", "\u{60c}"]),
];

/// One text made of `seeds`.
pub fn mutant(dice: &mut Dice, seeds: &[String]) -> String {
    let mut text = dice.one(seeds).to_string();
    // Mostly one change: what is changed much is seldom approved.
    let changes = [1, 1, 1, 2, 2, 3][dice.below(6)];
    for _ in 0..changes {
        text = change(dice, &text, seeds);
    }
    text
}

fn change(dice: &mut Dice, text: &str, seeds: &[String]) -> String {
    match dice.below(12) {
        0 | 1 => put_in(text, place(dice, text), &format!(" {} ", dice.one(COMMENTS))),
        2 => put_in(text, anywhere(dice, text), dice.one(COMMENTS)),
        3 => replaced(dice, text, " ", BLANKS),
        4 => put_in(text, anywhere(dice, text), dice.one(BLANKS)),
        5 => match quoted(dice, text) {
            Some((start, end)) => format!("{}{}{}", &text[..start], dice.one(LITERALS), &text[end..]),
            None => put_in(text, place(dice, text), &format!(", {} ", dice.one(LITERALS))),
        },
        6 => format!("{}{text}", dice.one(BEFORE)),
        7 => format!("{text}{}", dice.one(BEHIND)),
        8 => put_in(text, place(dice, text), &format!(" {} ", dice.one(BETWEEN))),
        9 => {
            let (letter, others) = LOOK_ALIKES[dice.below(LOOK_ALIKES.len())];
            let written = if dice.below(2) == 0 { letter.to_string() } else { letter.to_uppercase().to_string() };
            replaced(dice, text, &written, others)
        }
        10 => {
            // The beginning of one and the end of another.
            let other = dice.one(seeds).to_string();
            let (here, there) = (place(dice, text), place(dice, &other));
            format!("{}{}", &text[..here], &other[there..])
        }
        _ => {
            // A piece of another text in the place of a word.
            let other = dice.one(seeds).to_string();
            let (a, b) = (place(dice, &other), place(dice, &other));
            let piece = &other[a.min(b)..a.max(b)];
            let (c, d) = (place(dice, text), place(dice, text));
            format!("{} {piece} {}", &text[..c.min(d)], &text[c.max(d)..])
        }
    }
}

fn put_in(text: &str, at: usize, piece: &str) -> String {
    format!("{}{piece}{}", &text[..at], &text[at..])
}

/// A place before a word or behind it.
fn place(dice: &mut Dice, text: &str) -> usize {
    let places: Vec<usize> = text.char_indices().filter(|(_, c)| " (),".contains(*c)).map(|(i, _)| i).collect();
    if places.is_empty() { anywhere(dice, text) } else { places[dice.below(places.len())] }
}

fn anywhere(dice: &mut Dice, text: &str) -> usize {
    let mut at = dice.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// One of the places where `what` stands holds something else.
fn replaced(dice: &mut Dice, text: &str, what: &str, others: &[&str]) -> String {
    let places: Vec<usize> = text.match_indices(what).map(|(i, _)| i).collect();
    if places.is_empty() {
        return text.to_string();
    }
    let at = places[dice.below(places.len())];
    format!("{}{}{}", &text[..at], dice.one(others), &text[at + what.len()..])
}

/// Where a text in single quotes stands.
fn quoted(dice: &mut Dice, text: &str) -> Option<(usize, usize)> {
    let quotes: Vec<usize> = text.match_indices('\'').map(|(i, _)| i).collect();
    let pairs: Vec<_> = quotes.chunks_exact(2).map(|pair| (pair[0], pair[1] + 1)).collect();
    if pairs.is_empty() { None } else { Some(pairs[dice.below(pairs.len())]) }
}

#[test]
fn same_seed_generates_the_same_mutants() {
    let seeds = ["SELECT song FROM canary WHERE song = 'x'".to_string(), "SELECT count(*) FROM canary".to_string()];
    let thrown = |seed| (0..50).map(|_| mutant(&mut Dice::new(seed), &seeds)).collect::<Vec<_>>();
    assert_eq!(thrown(1), thrown(1));
    let mut dice = Dice::new(1);
    let all: std::collections::BTreeSet<String> = (0..500).map(|_| mutant(&mut dice, &seeds)).collect();
    assert!(all.len() > 400, "{}", all.len());
}
