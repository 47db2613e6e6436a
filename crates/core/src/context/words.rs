//! Words out of names and questions, brought to one form, so that `singerID`, `singer_ids` and "the singer's id" share words.

/// Longer words are no words: a hash, a hostile name. Their beginning tells them apart well enough.
const LONGEST_WORD: usize = 40;

/// A name, a comment or a question says what it is about within so many words.
const MOST_WORDS: usize = 64;

/// No text is read further.
const MOST_BYTES: usize = 4_000;

/// Words of questions that say how something is asked, not what about.
#[rustfmt::skip]
const ASKING: &[&str] = &[
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

/// Words that questions to all kinds of databases have, and that seldom name a table or a column there. They were found by counting
/// in, and reading, the training questions of one half of Spider's databases.
#[rustfmt::skip]
const VAGUE: &[&str] = &[
    "associated", "available", "belongs", "bigger", "called", "correspond", "created", "database", "don", "ending", "ends",
    "exist", "exists", "full", "information", "letter", "listed", "live", "lives", "living", "located", "longest", "made",
    "named", "number", "oldest", "popular", "possible", "produced", "recent", "recently", "record", "records", "results",
    "shared", "shortest", "started", "starting", "starts", "substring", "t", "times", "together", "took", "ways", "well",
    "word", "words", "youngest",
];

/// Plurals that no rule makes.
const IRREGULAR: &[(&str, &str)] = &[
    ("people", "person"),
    ("persons", "person"),
    ("men", "man"),
    ("women", "woman"),
    ("children", "child"),
    ("data", "data"),
    ("ids", "id"),
];

/// The words of a name or a comment, each brought to its stem.
pub(super) fn of_name(name: &str) -> Vec<String> {
    split(name).into_iter().map(|piece| stem(&piece.word)).collect()
}

/// A word of a question: as it was said, and its stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub word: String,
    pub stem: String,
    /// Each time it was said it stood in quotes or had a capital within a sentence: it is rather a value than a name of something.
    pub named: bool,
    /// It seldom names a table or a column.
    pub vague: bool,
    /// It stands directly behind the one before it.
    pub follows: bool,
}

/// The words of a question that say what it is about, in order, each once.
pub(super) fn of_question(question: &str) -> Vec<Said> {
    let words = split(question);
    let mut said: Vec<Said> = Vec::new();
    let mut before = None;
    for (i, Piece { word, named }) in words.iter().enumerate() {
        let next = words.get(i + 1).map_or("", |piece| &piece.word);
        let last = if i == 0 { "" } else { &words[i - 1].word };
        if ASKING.binary_search(&word.as_str()).is_ok() || is_sorting(last, word, next) {
            continue;
        }
        let stem = stem(word);
        match said.iter_mut().find(|s| s.stem == stem) {
            Some(known) => known.named &= named,
            None => {
                let vague = VAGUE.binary_search(&word.as_str()).is_ok();
                let follows = i > 0 && before == Some(i - 1);
                said.push(Said { word: word.clone(), stem, named: *named, vague, follows });
                before = Some(i);
            }
        }
    }
    said
}

/// "in ascending order", "order by name" speak of no orders.
fn is_sorting(last: &str, word: &str, next: &str) -> bool {
    word == "order"
        && (matches!(next, "by" | "of") || last == "in" || last.ends_with("ing") || last.starts_with("alphabetic"))
}

/// A word in lower case.
struct Piece {
    word: String,
    /// It stands in quotes, or has a capital and does not begin a sentence.
    named: bool,
}

/// Pieces of letters: split where anything else stands, and where a capital begins a word.
fn split(text: &str) -> Vec<Piece> {
    let mut end = text.len().min(MOST_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut words: Vec<Piece> = Vec::new();
    let mut word = String::new();
    let mut letters = text[..end].chars().peekable();
    let (mut before, mut capital, mut quoted, mut first) = (' ', false, false, true);
    while let Some(c) = letters.next() {
        let begins = c.is_uppercase()
            && (before.is_lowercase() || (before.is_uppercase() && letters.peek().is_some_and(|n| n.is_lowercase())));
        if (!c.is_alphabetic() || begins) && !word.is_empty() {
            words.push(Piece { word: std::mem::take(&mut word), named: quoted || (capital && !first) });
            first = false;
        }
        if c.is_alphabetic() && word.len() < LONGEST_WORD {
            if word.is_empty() {
                capital = c.is_uppercase();
            }
            word.extend(c.to_lowercase());
        }
        let within = letters.peek().is_some_and(|n| n.is_alphanumeric());
        match c {
            '"' | '“' | '”' => quoted = !quoted,
            // Others are apostrophes.
            '\'' | '‘' | '’' if quoted && !within => quoted = false,
            '\'' | '‘' | '’' if !quoted && within && !before.is_alphanumeric() => quoted = true,
            '.' | '?' | '!' => first = true,
            _ => {}
        }
        before = c;
        if words.len() >= MOST_WORDS {
            return words;
        }
    }
    if !word.is_empty() {
        words.push(Piece { word, named: quoted || (capital && !first) });
    }
    words
}

/// What forms of one word have in common: plurals, `-ed` and `-ing` are taken away. Not a word that can be shown.
pub(super) fn stem(word: &str) -> String {
    if let Some((_, one)) = IRREGULAR.iter().find(|(many, _)| *many == word) {
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
    fn f01_names_are_split_into_words() {
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
            assert_eq!(of_name(name), expected, "{name}");
        }
    }

    #[test]
    fn f01_forms_of_a_word_share_a_stem() {
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
    fn f01_a_question_is_what_it_is_about() {
        let stems = |question: &str| of_question(question).into_iter().map(|s| s.word).collect::<Vec<_>>();
        assert_eq!(
            stems("Show all countries and the number of singers in each country."),
            ["countries", "number", "singers"]
        );
        assert_eq!(stems("List the names in alphabetical order"), ["names"]);
        assert_eq!(stems("Which orders were shipped in order of date?"), ["orders", "shipped", "date"]);
        assert!(ASKING.is_sorted() && VAGUE.is_sorted());
    }

    #[test]
    fn f01_values_are_told_from_names() {
        for (question, named) in [
            ("Which papers did Ada Lovelace write?", &["ada", "lovelace"][..]),
            ("Singers of the song 'gold rush'. Songs too", &["gold", "rush"]),
            ("The students' majors and their pets' ages", &[]),
            ("Products of \"latte\" kind", &["latte"]),
            ("Is Boston a city? Boston", &[]),
        ] {
            let said = of_question(question).into_iter().filter(|s| s.named).map(|s| s.word).collect::<Vec<_>>();
            assert_eq!(said, named, "{question}");
        }
    }

    #[test]
    fn hostile_names_have_few_words() {
        assert!(of_name(&"x".repeat(10_000_000))[0].len() <= LONGEST_WORD + 4);
        assert!(of_name(&"aB".repeat(10_000_000)).len() <= MOST_WORDS);
        assert!(of_name(&"\u{1F980}é".repeat(1_000_000)).len() <= MOST_WORDS);
        of_name("\u{0}\u{7}\r\n\u{202e}İ");
    }
}
