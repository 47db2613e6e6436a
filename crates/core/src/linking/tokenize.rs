//! Splits names and questions into stemmed terms.
//!
//! `singerID`, `singer_ids` and "the singer's id" share terms.

/// Maximum length of a word, in bytes. Longer ones are hashes or hostile names; their prefix is
/// distinctive enough.
const MAX_WORD_BYTES: usize = 40;

/// Maximum number of words read from a name, comment or question.
const MAX_WORDS: usize = 64;

/// Maximum number of bytes read from a text.
const MAX_TEXT_BYTES: usize = 4_000;

/// Words that phrase a question without carrying content.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "according", "across", "after", "all", "along", "alphabetical", "alphabetically", "also",
    "among", "an", "and", "any", "appear", "are", "arrange", "as", "ascending", "at", "average", "based", "be",
    "been", "before", "being", "belong", "belonging", "below", "besides", "between", "both", "but", "by",
    "calculate", "can", "common", "compute", "contain", "containing", "contains", "corresponding", "could", "count",
    "decreasing", "descending", "determine", "did", "different", "display", "distinct", "do", "does", "done",
    "during", "each", "either", "else", "equal", "ever", "every", "exactly", "except", "few", "fewer", "fewest",
    "find", "following", "for", "from", "get", "give", "given", "greater", "greatest", "had", "has", "have",
    "having", "her", "high", "higher", "highest", "his", "how", "i", "if", "in", "include", "including",
    "increasing", "into", "is", "it", "its", "itself", "just", "kind", "kinds", "larger", "largest", "least", "less",
    "lesser", "lexicographic", "lexicographical", "like", "list", "low", "lower", "lowest", "many", "max", "maximum",
    "me", "mean", "min", "minimum", "more", "most", "much", "my", "never", "no", "not", "of", "on", "one", "only",
    "or", "ordered", "other", "our", "out", "over", "overall", "per", "please", "provide", "report", "respective",
    "respectively", "retrieve", "return", "s", "same", "show", "shown", "smaller", "smallest", "so", "some", "sort",
    "sorted", "such", "sum", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "three", "through", "to", "top", "total", "two", "under", "unique", "us", "use", "used", "uses",
    "using", "various", "want", "was", "we", "were", "what", "when", "where", "whether", "which", "while", "who",
    "whom", "whose", "will", "with", "within", "without", "would", "you", "your",
];

/// Words that are common in questions to all kinds of databases, and rarely name a table or column.
///
/// Selected by frequency, and by inspection, from the training questions of one half of Spider's
/// databases.
#[rustfmt::skip]
const LOW_SIGNAL_WORDS: &[&str] = &[
    "associated", "available", "belongs", "bigger", "called", "correspond", "created", "database", "don", "ending", "ends",
    "exist", "exists", "full", "information", "letter", "listed", "live", "lives", "living", "located", "longest", "made",
    "named", "number", "oldest", "popular", "possible", "produced", "recent", "recently", "record", "records", "results",
    "shared", "shortest", "started", "starting", "starts", "substring", "t", "times", "together", "took", "ways", "well",
    "word", "words", "youngest",
];

/// Plurals that do not follow a rule.
const IRREGULAR_PLURALS: &[(&str, &str)] = &[
    ("people", "person"),
    ("persons", "person"),
    ("men", "man"),
    ("women", "woman"),
    ("children", "child"),
    ("data", "data"),
    ("ids", "id"),
];

/// Splits a name or comment into stems.
pub(super) fn name_stems(name: &str) -> Vec<String> {
    split_words(name).into_iter().map(|piece| stem(&piece.word)).collect()
}

/// Word of a question with its stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuestionToken {
    pub word: String,
    pub stem: String,
    /// `true` if the word is likely a value rather than a name. Every occurrence is quoted, or
    /// capitalized within a sentence.
    pub is_value_like: bool,
    /// `true` if the word rarely names a table or column.
    pub is_low_signal: bool,
    /// `true` if the word directly follows the previous token.
    pub is_adjacent: bool,
}

/// Returns the distinct content words of a question, in order.
pub(super) fn question_tokens(question: &str) -> Vec<QuestionToken> {
    let words = split_words(question);
    let mut tokens: Vec<QuestionToken> = Vec::new();
    let mut before = None;
    for (i, RawToken { word, is_value_like: named }) in words.iter().enumerate() {
        let next = words.get(i + 1).map_or("", |piece| &piece.word);
        let last = if i == 0 { "" } else { &words[i - 1].word };
        if STOP_WORDS.binary_search(&word.as_str()).is_ok() || is_sort_phrase(last, word, next) {
            continue;
        }
        let stem = stem(word);
        match tokens.iter_mut().find(|s| s.stem == stem) {
            Some(known) => known.is_value_like &= named,
            None => {
                let vague = LOW_SIGNAL_WORDS.binary_search(&word.as_str()).is_ok();
                let follows = i > 0 && before == Some(i - 1);
                tokens.push(QuestionToken {
                    word: word.clone(),
                    stem,
                    is_value_like: *named,
                    is_low_signal: vague,
                    is_adjacent: follows,
                });
                before = Some(i);
            }
        }
    }
    tokens
}

/// Returns whether "order" is part of a sort phrase and does not refer to orders.
///
/// Examples: "in ascending order", "order by name".
fn is_sort_phrase(last: &str, word: &str, next: &str) -> bool {
    word == "order"
        && (matches!(next, "by" | "of") || last == "in" || last.ends_with("ing") || last.starts_with("alphabetic"))
}

/// Lowercase word of a text.
struct RawToken {
    word: String,
    /// `true` if the word is quoted, or capitalized without beginning a sentence.
    is_value_like: bool,
}

/// Splits a text into alphabetic words, at non-letters and at camel case boundaries.
fn split_words(text: &str) -> Vec<RawToken> {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut words: Vec<RawToken> = Vec::new();
    let mut word = String::new();
    let mut letters = text[..end].chars().peekable();
    let (mut before, mut capital, mut quoted, mut first) = (' ', false, false, true);
    while let Some(c) = letters.next() {
        let begins = c.is_uppercase()
            && (before.is_lowercase() || (before.is_uppercase() && letters.peek().is_some_and(|n| n.is_lowercase())));
        if (!c.is_alphabetic() || begins) && !word.is_empty() {
            words.push(RawToken { word: std::mem::take(&mut word), is_value_like: quoted || (capital && !first) });
            first = false;
        }
        if c.is_alphabetic() && word.len() < MAX_WORD_BYTES {
            if word.is_empty() {
                capital = c.is_uppercase();
            }
            word.extend(c.to_lowercase());
        }
        let within = letters.peek().is_some_and(|n| n.is_alphanumeric());
        match c {
            '"' | '“' | '”' => quoted = !quoted,
            // All other single quotes are apostrophes.
            '\'' | '‘' | '’' if quoted && !within => quoted = false,
            '\'' | '‘' | '’' if !quoted && within && !before.is_alphanumeric() => quoted = true,
            '.' | '?' | '!' => first = true,
            _ => {}
        }
        before = c;
        if words.len() >= MAX_WORDS {
            return words;
        }
    }
    if !word.is_empty() {
        words.push(RawToken { word, is_value_like: quoted || (capital && !first) });
    }
    words
}

/// Returns the stem of a word: without plural, `-ed` and `-ing` suffixes. Not a displayable word.
pub(super) fn stem(word: &str) -> String {
    if let Some((_, one)) = IRREGULAR_PLURALS.iter().find(|(many, _)| *many == word) {
        return (*one).to_string();
    }
    if !word.is_ascii() || word.len() < 4 {
        return word.to_string();
    }
    let mut stem = word;
    let singular;
    if let Some(rest) = stem.strip_suffix("ies").filter(|rest| rest.len() > 1) {
        singular = format!("{rest}y");
        stem = &singular;
    } else if let Some(rest) =
        stem.strip_suffix("es").filter(|r| ["ss", "x", "ch", "sh"].iter().any(|e| r.ends_with(e)))
    {
        stem = rest;
    } else if let Some(rest) = stem.strip_suffix('s').filter(|r| !["s", "u", "i"].iter().any(|e| r.ends_with(e))) {
        stem = rest;
    }
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() > 2
            && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            let bytes = rest.as_bytes();
            let doubled =
                bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] && !rest.ends_with(['l', 's']);
            stem = if doubled { &rest[..rest.len() - 1] } else { rest };
            break;
        }
    }
    let stem = stem.strip_suffix('e').filter(|rest| rest.len() > 2).unwrap_or(stem);
    match stem.strip_suffix('y').filter(|rest| rest.len() > 2) {
        Some(rest) => format!("{rest}i"),
        None => stem.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_names_into_stems() {
        for (name, expected) in [
            ("singerID", vec!["singer", "id"]),
            ("Singer_in_Concert", vec!["singer", "in", "concert"]),
            ("HTTPRequests2", vec!["http", "request"]),
            ("home town", vec!["hom", "town"]),
            ("sbCustPhone", vec!["sb", "cust", "phon"]),
            ("Straße", vec!["straße"]),
            ("", vec![]),
            ("42", vec![]),
        ] {
            assert_eq!(name_stems(name), expected, "{name}");
        }
    }

    #[test]
    fn stems_inflected_forms_alike() {
        for forms in [
            &["hire", "hired", "hiring", "hires"][..],
            &["city", "cities"],
            &["course", "courses"],
            &["address", "addresses"],
            &["box", "boxes"],
            &["people", "person"],
            &["status"],
            &["stop", "stopped"],
        ] {
            for form in forms {
                assert_eq!(stem(form), stem(forms[0]), "{form}");
            }
        }
        assert_ne!(stem("status"), stem("state"));
    }

    #[test]
    fn drops_stop_words_from_questions() {
        let stems = |question: &str| question_tokens(question).into_iter().map(|s| s.word).collect::<Vec<_>>();
        assert_eq!(
            stems("Show all countries and the number of singers in each country."),
            ["countries", "number", "singers"]
        );
        assert_eq!(stems("List the names in alphabetical order"), ["names"]);
        assert_eq!(stems("Which orders were shipped in order of date?"), ["orders", "shipped", "date"]);
        assert!(STOP_WORDS.is_sorted() && LOW_SIGNAL_WORDS.is_sorted());
    }

    #[test]
    fn detects_value_like_words_in_questions() {
        for (question, named) in [
            ("Which papers did Ada Lovelace write?", &["ada", "lovelace"][..]),
            ("Singers of the song 'gold rush'. Songs too", &["gold", "rush"]),
            ("The students' majors and their pets' ages", &[]),
            ("Products of \"latte\" kind", &["latte"]),
            ("Is Boston a city? Boston", &[]),
        ] {
            let actual =
                question_tokens(question).into_iter().filter(|s| s.is_value_like).map(|s| s.word).collect::<Vec<_>>();
            assert_eq!(actual, named, "{question}");
        }
    }

    #[test]
    fn bounds_stems_of_hostile_names() {
        assert!(name_stems(&"x".repeat(10_000_000))[0].len() <= MAX_WORD_BYTES + 4);
        assert!(name_stems(&"aB".repeat(10_000_000)).len() <= MAX_WORDS);
        assert!(name_stems(&"\u{1F980}é".repeat(1_000_000)).len() <= MAX_WORDS);
        name_stems("\u{0}\u{7}\r\n\u{202e}İ");
    }
}
