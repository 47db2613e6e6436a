#![doc = include_str!("unbalanced_parenthesis.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "unbalanced-parenthesis", group: "syntax", page: include_str!("unbalanced_parenthesis.md"), check };

/// How many places are tried.
const MOST_TRIES: usize = 32;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut open: Vec<usize> = Vec::new();
    for (i, word) in broken.words.iter().enumerate() {
        match word.token {
            Token::LParen => open.push(i),
            Token::RParen if open.pop().is_none() => {
                superfluous(subject, &broken, i, out);
                return;
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        missing(subject, &broken, &open, out);
    }
}

/// There are more `)` than `(`; the first that closes nothing is at a word.
fn superfluous(subject: &Subject<'_>, broken: &Broken<'_>, at: usize, out: &mut Vec<Finding>) {
    let end = broken.end();
    let closes = |i: usize| broken.is(i, &Token::RParen);
    // Of parentheses side by side it does not matter which one goes: the last of them is tried.
    let places = (0..=at).rev().filter(|&i| closes(i) && !(i < at && closes(i + 1))).take(MOST_TRIES);
    let edits = |i: usize| -> Vec<Edit> {
        let at_end = broken.words[i..end].iter().all(|w| w.token == Token::RParen);
        let last = if at_end { end } else { i + 1 };
        broken.words[i..last].iter().map(|w| cut(w.span)).collect()
    };
    if let Some((span, edits)) = unopened_call(broken, at) {
        let name = subject.query.text(span);
        out.push(
            Finding::new(RULE.code, Severity::Error, span, name, format!("the parenthesis behind {name} is missing"))
                .advise(format!("Write {name}(…), with a ( behind the name of the function."))
                .mend(fix(
                    edits,
                    Applicability::Likely,
                    format!("{name} is called, and what it takes ends with the parenthesis"),
                )),
        );
        return;
    }
    let mut found: Vec<usize> = places.filter(|&i| broken.mends(&edits(i))).collect();
    // A parenthesis right behind another is the likeliest to be one too many.
    let doubled = |i: usize| i > 0 && closes(i - 1);
    found.sort_by_key(|&i| !doubled(i));
    found.truncate(4);
    let rivals = found.iter().skip(1).any(|&i| doubled(i) == doubled(found[0]));
    let at_end = found.first() == Some(&at) && broken.words[at..end].iter().all(|w| w.token == Token::RParen);
    let sure = found.len() == 1 || at_end || (found.first() == Some(&at) && doubled(at) && !rivals);
    let sure = if sure { Applicability::Likely } else { Applicability::Suggested };
    let why = "without this parenthesis the query is whole";
    let fixes: Vec<Fix> = found.into_iter().map(|i| fix(edits(i), sure, why)).collect();
    if fixes.is_empty() {
        return;
    }
    let span = broken.words[at].span;
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), "this parenthesis closes nothing")
            .advise("There is a ) too many. Each ( has one ).");
    finding.fixes = fixes;
    out.push(finding);
}

/// `SUMo.total)`: an aggregate that lost its `(` before the `)` that closes nothing.
fn unopened_call(broken: &Broken<'_>, close: usize) -> Option<(Span, Vec<Edit>)> {
    const CALLS: [&str; 5] = ["COUNT", "SUM", "AVG", "MIN", "MAX"];
    // Its one argument: a star, or a column with its table.
    let argument = |w: &Token| matches!(w, Token::Word(_) | Token::Period | Token::Mul);
    let start = (0..close).rev().take(4).take_while(|&i| argument(&broken.words[i].token)).last()?;
    (start..close).find_map(|i| {
        let Token::Word(word) = &broken.words[i].token else { return None };
        let name = CALLS.iter().find(|c| word.value.get(..c.len()).is_some_and(|w| w.eq_ignore_ascii_case(c)))?;
        let rest = &word.value[name.len()..];
        let qualifies = broken.is(i + 1, &Token::Period);
        let known = if rest.is_empty() { i + 1 < close && !qualifies } else { qualifies || broken.is_name(rest) };
        let span = broken.words[i].span;
        let name = Span::new(span.start, span.start + name.len());
        let edits = vec![insert(name.end, "(")];
        (word.quote_style.is_none() && known && !broken.is_name(&word.value) && broken.mends(&edits))
            .then_some((name, edits))
    })
}

/// There are more `(` than `)`.
fn missing(subject: &Subject<'_>, broken: &Broken<'_>, open: &[usize], out: &mut Vec<Finding>) {
    let end = broken.end();
    let last = broken.words[end - 1].span.end;
    let mut fixes: Vec<Fix> = Vec::new();
    let at_end = vec![insert(last, ")".repeat(open.len()))];
    if broken.mends(&at_end) && !makes_tuple(broken, end) {
        let sure = if is_complete(subject, broken, open) { Applicability::Likely } else { Applicability::Suggested };
        fixes.push(fix(at_end, sure, "the query is whole but for what closes it"));
    }
    if open.len() == 1 {
        let why = "with a parenthesis here the query is whole";
        let edit = |i: usize| vec![insert(broken.words[i - 1].span.end, ")")];
        let mut found: Vec<usize> = inner_places(broken, open[0])
            .into_iter()
            .filter(|&i| broken.mends(&edit(i)) && !makes_tuple(broken, i))
            .collect();
        // Between two signs of arithmetic is the last place to think of.
        if found.iter().any(|&i| !broken.is(i, &Token::RParen)) {
            found.retain(|&i| !broken.is(i, &Token::RParen));
        }
        // `COUNT(*` has no other place for its parenthesis.
        let star = |i: usize| broken.is(i - 1, &Token::Mul) && broken.is(i - 2, &Token::LParen);
        if let Some(&place) = found.iter().find(|&&i| star(i)) {
            fixes = vec![fix(
                edit(place),
                Applicability::Likely,
                "nothing but a parenthesis can follow the star of a call",
            )];
        } else {
            let many = found.len() + fixes.len() > 1;
            let sure = if many { Applicability::Suggested } else { Applicability::Likely };
            fixes.extend(found.into_iter().take(4).map(|i| fix(edit(i), sure, why)));
        }
    }
    let Some(first) = open.last().filter(|_| !fixes.is_empty()) else { return };
    let span = broken.words[*first].span;
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), "this parenthesis is never closed")
            .advise("There is a ) missing. Each ( has one ).");
    finding.fixes = fixes;
    out.push(finding);
}

/// Where one `)` may be missing inside the text: before a comma, an alias, a clause or another parenthesis, and behind the star of
/// a call. The last place first.
fn inner_places(broken: &Broken<'_>, open: usize) -> Vec<usize> {
    let depth = broken.words[open].depth + 1;
    let may_end = |&i: &usize| {
        let here = &broken.words[i];
        let star = broken.is(i - 1, &Token::Mul) && broken.is(i - 2, &Token::LParen);
        // Before a parenthesis is the same as behind it, so only the last of several counts.
        let closes = here.token == Token::RParen && !broken.is(i + 1, &Token::RParen);
        let stands = closes
            || here.token == Token::Comma
            || matches!(
                broken.keyword(i),
                Some(
                    Keyword::AS
                        | Keyword::ASC
                        | Keyword::DESC
                        | Keyword::UNION
                        | Keyword::EXCEPT
                        | Keyword::INTERSECT
                        | Keyword::THEN
                )
            )
            || broken.clause(i).is_some_and(|c| c != Clause::Select);
        let inside = here.depth + usize::from(here.token == Token::RParen) >= depth;
        let begins = matches!(broken.words[i - 1].token, Token::LParen | Token::Comma | Token::Period);
        (stands || star) && inside && !begins && !(star && here.token == Token::RParen)
    };
    (open + 2..broken.end()).rev().filter(may_end).take(MOST_TRIES).collect()
}

/// Whether a `)` before a word makes a list of something that is no call: `(a, b)` is hardly ever meant.
fn makes_tuple(broken: &Broken<'_>, place: usize) -> bool {
    // For each open parenthesis: whether a list may stand in it, and whether there is a comma.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let is_tuple = |(may, comma): (bool, bool)| !may && comma;
    for i in 0..broken.end() {
        if i == place && open.pop().is_some_and(is_tuple) {
            return true;
        }
        match broken.words[i].token {
            Token::LParen => open.push((may_list(broken, i), false)),
            Token::RParen if open.pop().is_some_and(is_tuple) => return true,
            Token::Comma => {
                if let Some(last) = open.last_mut() {
                    last.1 = true;
                }
            }
            _ => {}
        }
    }
    open.into_iter().any(is_tuple)
}

/// Whether a list may stand in a parenthesis: a call, `IN (…)`, a subquery.
fn may_list(broken: &Broken<'_>, open: usize) -> bool {
    let selects = matches!(broken.keyword(open + 1), Some(Keyword::SELECT | Keyword::WITH));
    let before = open.checked_sub(1).and_then(|i| broken.keyword(i));
    let grouping = matches!(
        before,
        Some(
            Keyword::SELECT
                | Keyword::DISTINCT
                | Keyword::WHERE
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::ON
                | Keyword::HAVING
                | Keyword::BY
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::BETWEEN
        )
    );
    selects || (before.is_some() && !grouping)
}

/// Whether the text looks like it was written to its end: what was cut off may have lost more than a parenthesis. Half a number
/// looks like a number, and behind a name a whole condition may have stood.
fn is_complete(subject: &Subject<'_>, broken: &Broken<'_>, open: &[usize]) -> bool {
    if broken.is_closed() {
        return true;
    }
    // Models do not end with a space, unless they are stopped.
    if subject.query.source.ends_with(' ') {
        return false;
    }
    let ends = match &broken.words[broken.end() - 1].token {
        Token::RParen | Token::SingleQuotedString(_) => true,
        Token::Word(word) => {
            word.quote_style.is_some()
                || matches!(word.keyword, Keyword::ASC | Keyword::DESC | Keyword::NULL | Keyword::END)
        }
        _ => false,
    };
    // A condition that is cut off leaves many open; one is forgotten.
    ends && open.len() == 1
}
