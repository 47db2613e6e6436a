#![doc = include_str!("dangling_word.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, cut, fix, is_explained};
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "dangling-word", group: "syntax", page: include_str!("dangling_word.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let idle: Vec<Span> = (1..broken.words.len()).filter_map(|i| dangling(&broken, i)).collect();
    let Some(&span) = idle.first() else { return };
    let edits: Vec<_> = idle.iter().map(|s| cut(*s)).collect();
    if !broken.mends(&edits) {
        return;
    }
    let word = subject.query.text(span);
    // At the very end of a text that nothing closes, more was to come.
    let last = idle.last().is_some_and(|s| subject.query.source[s.end..].trim().is_empty());
    let (sure, why) = match last {
        true => (Applicability::Suggested, "nothing of the query that is there is lost, but more may have been meant"),
        false => {
            (Applicability::Likely, "nothing of the query is lost: the text goes on without what the word announces")
        }
    };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, word, format!("nothing follows that `{word}` could stand for"))
            .advise(format!("Complete what {word} begins, or leave it out."))
            .mend(fix(edits, sure, why)),
    );
}

/// The words that announce something which does not come: a clause, a closing parenthesis or the end follows instead.
fn dangling(broken: &Broken<'_>, at: usize) -> Option<Span> {
    let word = broken.words.get(at)?;
    if broken.is(at - 1, &Token::Period) {
        return None;
    }
    let len = match broken.keyword(at) {
        Some(Keyword::AND | Keyword::OR | Keyword::WHERE | Keyword::HAVING) => 1,
        Some(Keyword::LIMIT | Keyword::OFFSET) => 1,
        Some(Keyword::GROUP | Keyword::ORDER) if broken.keyword(at + 1) == Some(Keyword::BY) => 2,
        _ if word.token == Token::Comma => 1,
        _ => return None,
    };
    let next = at + len;
    let ends = match broken.words.get(next).map(|w| &w.token) {
        None | Some(Token::RParen | Token::SemiColon) => true,
        Some(_) => {
            let set = matches!(broken.keyword(next), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
            // `WHERE AND a = 1` has one word too many.
            let doubled = len == 1
                && matches!(broken.keyword(at), Some(Keyword::AND | Keyword::OR))
                && matches!(broken.keyword(at - 1), Some(Keyword::WHERE | Keyword::AND | Keyword::OR | Keyword::ON));
            set || doubled || broken.clause(next).is_some_and(|c| c > crate::broken::Clause::Join)
        }
    };
    ends.then(|| word.span.join(broken.words[next - 1].span))
}
