//! Noun phrases in English questions: the subject and the words that qualify it.
//!
//! There is no grammar: a noun phrase ends at a function word, a verb or a punctuation mark. A
//! question that follows no known pattern has no subject, and nothing is concluded from it.

/// Words that end a noun phrase.
#[rustfmt::skip]
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "above", "across", "after", "against", "ago", "all", "along", "already", "also", "always", "am",
    "among", "an", "and", "any", "are", "around", "as", "at", "be", "been", "before", "being", "below", "between",
    "both", "but", "by", "can", "could", "did", "do", "does", "doing", "done", "down", "during", "each", "either",
    "even", "ever", "every", "few", "fewer", "for", "from", "had", "has", "have", "having", "he", "her", "here",
    "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "least", "less", "like", "many", "may",
    "me", "might", "more", "most", "much", "must", "my", "near", "neither", "never", "no", "nor", "not", "now", "of", "off",
    "on", "only", "onto", "or", "our", "out", "over", "per", "s", "shall", "she", "should", "since", "so", "some",
    "still", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "through", "till", "to", "under", "until", "up", "us", "using", "via", "was", "we", "were", "what", "when", "where",
    "which", "who", "whom", "whose", "why", "will", "with", "within", "without", "would", "yet", "you", "your",
];

/// Verbs that follow a noun phrase in questions.
///
/// Forms in `-ed` and `-ing` are recognized by their ending.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "appear", "appears", "arrive", "arrives", "ate", "attend", "attends", "became", "began", "begin", "begins",
    "belong", "belongs", "bought", "broke", "built", "buy", "buys", "came", "chose", "come", "comes", "compete",
    "competes", "consist", "consists", "contain", "contains", "correspond", "corresponds", "cost", "costs", "depart",
    "departs", "drove", "earn", "earns", "end", "ends", "enroll", "enrolls", "exist", "exists", "expire", "expires",
    "fell", "flew", "flies", "fly", "gave", "generate", "generates", "get", "gets", "give", "gives", "go", "goes",
    "got", "graduate", "graduates", "grew", "happen", "happens", "held", "hold", "holds", "host", "hosts", "include",
    "includes", "join", "joins", "kept", "knew", "leave", "leaves", "led", "left", "live", "lives", "lose", "loses",
    "lost", "made", "make", "makes", "manage", "manages", "met", "need", "needs", "occur", "occurs", "offer",
    "offers", "operate", "operates", "order", "orders", "own", "owns", "paid", "participate", "participates", "pay",
    "pays", "perform", "performs", "play", "plays", "prescribe", "prescribes", "produce", "produces", "provide",
    "provides", "publish", "publishes", "put", "ran", "rank", "ranks", "rate", "rates", "reach", "reaches", "receive",
    "receives", "register", "registers", "remain", "remains", "report", "reports", "represent", "represents",
    "reside", "resides", "review", "reviews", "run", "runs", "said", "sat", "saw", "score", "scores", "sell", "sells",
    "sent", "serve", "serves", "share", "shares", "sign", "signs", "sold", "speak", "speaks", "spend", "spends",
    "spent", "spoke", "start", "starts", "stay", "stays", "stood", "studies", "study", "support", "supports", "take",
    "takes", "taught", "teach", "teaches", "took", "travel", "travels", "treat", "treats", "use", "uses", "visit",
    "visits", "wait", "waits", "want", "wants", "weigh", "weighs", "went", "win", "wins", "won", "work", "works",
    "write", "writes", "wrote",
];

/// Words that may precede a noun phrase.
#[rustfmt::skip]
const DETERMINERS: &[&str] = &[
    "a", "all", "an", "any", "both", "down", "each", "every", "for", "her", "his", "its", "me", "my", "no", "of",
    "one", "our", "out", "some", "the", "their", "there", "these", "this", "those", "to", "us", "your",
];

/// Adjectives and numerals that quantify or select, and never need a column of their own.
#[rustfmt::skip]
const QUANTIFIERS: &[&str] = &[
    "absolute", "active", "actual", "approximate", "available", "average", "best", "big", "biggest", "bottom",
    "busiest", "certain", "cheapest", "combined", "common", "complete", "corresponding", "cumulative", "current",
    "different", "distinct", "earliest", "eight", "entire", "exact", "existing", "expensive", "fastest", "fewest",
    "first", "five", "following", "four", "full", "general", "greatest", "heaviest", "high", "highest", "hot",
    "inactive", "individual", "large", "largest", "last", "latest", "least", "less", "lightest", "long", "longest",
    "low", "lowest", "main", "major", "many", "max", "maximum", "mean", "min", "minimum", "minor", "more", "most",
    "new", "newest", "next", "nine", "old", "oldest", "only", "other", "overall", "particular", "poorest", "popular",
    "possible", "previous", "recent", "relative", "respective", "richest", "same", "second", "seven", "several",
    "short", "shortest", "single", "six", "slowest", "small", "smallest", "specific", "square", "tallest", "ten",
    "third", "three", "top", "total", "two", "unique", "various", "whole", "worst", "youngest",
];

/// Nouns that name a property, a measure or nothing in particular; no table is expected for them.
#[rustfmt::skip]
const MEASURES: &[&str] = &[
    "address", "addresses", "age", "ages", "amount", "amounts", "answer", "anybody", "anyone", "anything", "area",
    "attribute", "attributes", "average", "body", "bottom", "breakdown", "budget", "budgets", "case", "cases",
    "categories", "category", "change", "characteristic", "cities", "city", "code", "codes", "column", "columns",
    "combination", "combinations", "content", "contents", "cost", "costs", "count", "countries", "country", "counts",
    "data", "database", "databases", "date", "dates", "day", "days", "degree", "degrees", "description",
    "descriptions", "detail", "details", "deviation", "difference", "distribution", "dollar", "dollars", "dose",
    "duration", "element", "elements", "email", "emails", "entities", "entity", "entries", "entry", "euro", "euros",
    "everyone", "everything", "fare", "feature", "features", "female", "females", "field", "fields", "figure",
    "figures", "first", "fraction", "frequency", "gender", "grade", "grades", "group", "groups", "growth", "guy",
    "guys", "half", "height", "history", "hour", "hours", "human", "humans", "id", "identifier", "identifiers", "ids",
    "income", "increase", "individual", "individuals", "information", "instance", "instances", "item", "items", "key",
    "keys", "kilogram", "kilograms", "kilometer", "kilometers", "kind", "kinds", "km", "last", "least", "length",
    "letter", "letters", "level", "levels", "list", "lists", "location", "majority", "male", "males", "man",
    "maximum", "mean", "median", "member", "members", "men", "meter", "meters", "mile", "miles", "minimum",
    "minority", "minute", "minutes", "month", "months", "most", "name", "names", "nobody", "nothing", "number",
    "numbers", "object", "objects", "one", "ones", "order", "other", "others", "overview", "pair", "pairs", "part",
    "parts", "people", "percent", "percentage", "person", "persons", "phone", "place", "places", "point", "points",
    "population", "position", "pound", "pounds", "price", "prices", "profit", "properties", "property", "proportion",
    "quantity", "question", "range", "rank", "rate", "rates", "ratio", "record", "records", "report", "rest",
    "result", "results", "revenue", "row", "rows", "salaries", "salary", "sales", "same", "score", "scores", "second",
    "seconds", "set", "sets", "share", "shares", "size", "sizes", "somebody", "someone", "something", "sort", "sorts",
    "standard", "statistic", "statistics", "status", "subject", "subjects", "sum", "summary", "table", "tables",
    "term", "terms", "thing", "things", "time", "times", "title", "titles", "top", "topic", "topics", "total",
    "totals", "trend", "trends", "type", "types", "unit", "units", "value", "values", "variance", "wage", "wages",
    "way", "ways", "week", "weeks", "weight", "woman", "women", "word", "words", "year", "years",
];

/// Measures that the subject of a question may follow: "which year had the most …".
#[rustfmt::skip]
const COUNTED_MEASURES: &[&str] = &[
    "amount", "average", "count", "date", "dates", "day", "days", "fraction", "half", "hour", "hours", "majority",
    "minute", "minutes", "month", "months", "number", "numbers", "part", "percent", "percentage", "proportion",
    "quarter", "ratio", "rest", "share", "sum", "time", "times", "total", "week", "weekday", "weeks", "year", "years",
];

/// Auxiliary verbs.
#[rustfmt::skip]
const AUXILIARIES: &[&str] = &[
    "are", "can", "could", "did", "do", "does", "had", "has", "have", "is", "was", "were", "will", "would",
];

/// Verbs that begin a request.
#[rustfmt::skip]
const INSTRUCTIONS: &[&str] = &[
    "calculate", "compare", "compute", "count", "display", "fetch", "find", "get", "give", "identify", "list", "name",
    "output", "print", "provide", "report", "retrieve", "return", "see", "select", "show", "tell",
];

/// Words that begin a request without a verb: "average price per city".
#[rustfmt::skip]
const AGGREGATES: &[&str] = &[
    "average", "each", "every", "max", "maximum", "mean", "min", "minimum", "number", "sum", "total",
];

/// Polite words before a question.
#[rustfmt::skip]
const OPENINGS: &[&str] = &[
    "also", "and", "can", "could", "d", "hello", "hey", "hi", "i", "know", "let", "like", "me", "need", "now", "ok",
    "okay", "please", "so", "thanks", "then", "to", "us", "want", "we", "well", "would", "you",
];

/// Comparatives and particles that end a noun phrase.
#[rustfmt::skip]
const COMPARISONS: &[&str] = &[
    "alphabetically", "besides", "bigger", "cheaper", "except", "excluding", "greater", "higher", "including",
    "larger", "longer", "lower", "older", "regardless", "shorter", "smaller", "together", "younger",
];

/// Maximum number of words of a question that are read; the rest is ignored.
const MAX_WORDS: usize = 200;

/// Word or punctuation mark of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionWord {
    /// Original spelling.
    pub text: String,
    /// Lower-case spelling; a punctuation mark is a word of its own.
    pub lower: String,
}

impl QuestionWord {
    fn is_punctuation(&self) -> bool {
        !self.lower.starts_with(char::is_alphanumeric)
    }

    fn is_number(&self) -> bool {
        self.lower.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Returns whether the word begins with a capital letter.
    pub fn is_capitalized(&self) -> bool {
        self.text.starts_with(char::is_uppercase)
    }
}

/// Splits a question into words and punctuation marks.
///
/// A hyphen joins words, an apostrophe ends one.
pub fn question_words(question: &str) -> Vec<QuestionWord> {
    let mut words: Vec<QuestionWord> = Vec::new();
    let mut text = String::new();
    let mut letters = question.chars().peekable();
    let mut end = |text: &mut String| {
        if !text.is_empty() && words.len() < MAX_WORDS {
            words.push(QuestionWord { lower: text.to_lowercase(), text: std::mem::take(text) });
        }
        text.clear();
    };
    while let Some(c) = letters.next() {
        let joins = c == '-' && !text.is_empty() && letters.peek().is_some_and(|next| next.is_alphanumeric());
        if c.is_alphanumeric() || joins || c == '_' {
            text.push(c);
            continue;
        }
        end(&mut text);
        if !c.is_whitespace() {
            text.push(c);
            end(&mut text);
        }
    }
    end(&mut text);
    words
}

/// Returns the noun phrase that a question asks for, with its head last.
///
/// The subject of "Which year had the most power failures?" is `power failures`.
pub fn subject(words: &[QuestionWord]) -> Option<&[QuestionWord]> {
    let skip = |mut at: usize, list: &[&str]| {
        while words.get(at).is_some_and(|w| is_in(list, w) || w.is_punctuation()) {
            at += 1;
        }
        at
    };
    let lower = |at: usize| words.get(at).map_or("", |w| w.lower.as_str());
    let mut at = skip(0, OPENINGS);
    if (lower(at), lower(at + 1)) == ("on", "average") {
        at = skip(at + 2, &[]);
    }
    let prepositions = ["in", "on", "at", "for", "from", "to", "of", "by"];
    if prepositions.contains(&lower(at)) && ["which", "what", "how", "each", "every"].contains(&lower(at + 1)) {
        at += 1;
    }
    let next = lower(at + 1);
    match lower(at) {
        "how" if matches!(next, "many" | "much") => resolve_noun_phrase(words, at + 2),
        "how" => subject_after_auxiliary(words, at + 2),
        "when" | "where" | "why" => subject_after_auxiliary(words, at + 1),
        first @ ("which" | "what" | "whats") => {
            let after = skip(at + 1, &["s"]);
            match lower(after) {
                "is" | "are" | "was" | "were" => resolve_noun_phrase(words, after + 1),
                _ if first == "whats" || after > at + 1 => resolve_noun_phrase(words, after),
                other if AUXILIARIES.contains(&other) => subject_after_auxiliary(words, after),
                _ => resolve_noun_phrase(words, after),
            }
        }
        "who" if matches!(next, "is" | "are" | "was" | "were") => resolve_noun_phrase(words, at + 2),
        "are" | "is" | "do" | "does" if matches!(next, "there" | "we" | "you") => {
            resolve_noun_phrase(words, skip(at + 2, &["any", "have", "own", "sell"]))
        }
        first if INSTRUCTIONS.binary_search(&first).is_ok() => resolve_noun_phrase(words, at + 1),
        first if AGGREGATES.binary_search(&first).is_ok() => resolve_noun_phrase(words, at),
        _ => None,
    }
}

/// Returns the words that qualify the subject.
///
/// These are `hardcover` in "Which hardcover books …?" and `unpaid` in "Which orders are unpaid?".
pub fn qualifiers(words: &[QuestionWord]) -> Vec<&QuestionWord> {
    let before_head = subject(words).and_then(|phrase| phrase.split_last()).map_or(&[][..], |(_, before)| before);
    let last = words.iter().rposition(|w| !w.is_punctuation());
    let is_copula = |at: usize| matches!(words[at].lower.as_str(), "is" | "are" | "was" | "were");
    let predicate = last.filter(|&at| at > 0 && is_copula(at - 1)).map(|at| &words[at]);
    let tells = |w: &&QuestionWord| {
        let asks = [FUNCTION_WORDS, QUANTIFIERS, MEASURES, COMPARISONS, VERBS].iter().any(|list| is_in(list, w));
        !asks && !w.is_capitalized() && !w.is_number() && !is_adverb(w) && w.lower.len() > 2
    };
    before_head.iter().chain(predicate).filter(tells).collect()
}

/// Returns whether a noun is a measure, for which no table or column is expected.
pub fn is_measure(word: &QuestionWord) -> bool {
    is_in(MEASURES, word)
}

/// Returns whether a word is a misspelled quantifier, such as `differnt`.
pub fn is_misspelt_quantifier(word: &str) -> bool {
    word.len() > 5 && QUANTIFIERS.iter().any(|quantifier| crate::text::similarity::is_typo(word, quantifier))
}

/// Returns the subject after an auxiliary verb.
///
/// A pronoun or a proper name is not a subject: no table is expected for it.
fn subject_after_auxiliary(words: &[QuestionWord], at: usize) -> Option<&[QuestionWord]> {
    words.get(at).filter(|w| is_in(AUXILIARIES, w))?;
    let first = words.get(at + 1)?;
    let is_pronoun = matches!(first.lower.as_str(), "we" | "you" | "i" | "they" | "he" | "she" | "it" | "there");
    if is_pronoun || first.is_capitalized() { None } else { resolve_noun_phrase(words, at + 1) }
}

/// Resolves "the number of …" and "which year had the most …" to the noun phrase they refer to.
fn resolve_noun_phrase(words: &[QuestionWord], mut at: usize) -> Option<&[QuestionWord]> {
    for _ in 0..4 {
        let (start, end) = noun_phrase(words, at)?;
        let head = &words[end - 1];
        if is_in(MEASURES, head) && words.get(end).is_some_and(|w| matches!(w.lower.as_str(), "of" | "per")) {
            at = end + 1;
        } else if is_in(COUNTED_MEASURES, head) && end - start == 1 {
            let after = end + words[end..].iter().take_while(|w| is_in(AUXILIARIES, w)).count();
            words.get(after).filter(|w| after > end && is_in(DETERMINERS, w))?;
            at = after;
        } else {
            return Some(&words[start..end]);
        }
    }
    None
}

/// Returns the start and end of the next noun phrase.
fn noun_phrase(words: &[QuestionWord], at: usize) -> Option<(usize, usize)> {
    let passes = |w: &QuestionWord| {
        is_in(DETERMINERS, w) || is_in(QUANTIFIERS, w) || is_adverb(w) || w.is_number() || w.lower == ","
    };
    let start = at + words.get(at..)?.iter().take_while(|w| passes(w)).count();
    let ends = |at: usize, word: &QuestionWord| {
        let next = words.get(at + 1);
        let is_participle = word.lower.len() > 4 && (word.lower.ends_with("ed") || word.lower.ends_with("ing"));
        let is_last = next.is_none_or(|n| n.is_punctuation() || is_in(FUNCTION_WORDS, n) || is_adverb(n));
        word.is_punctuation()
            || word.is_number()
            || is_in(FUNCTION_WORDS, word)
            || is_in(COMPARISONS, word)
            || is_adverb(word)
            || (at > start && (is_in(VERBS, word) || (is_participle && is_last)))
    };
    let length = words[start..].iter().enumerate().take_while(|(n, w)| !ends(start + n, w)).count();
    (length > 0).then_some((start, start + length))
}

fn is_in(list: &[&str], word: &QuestionWord) -> bool {
    list.binary_search(&word.lower.as_str()).is_ok()
}

fn is_adverb(word: &QuestionWord) -> bool {
    word.lower.len() > 4 && word.lower.ends_with("ly")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_lists_are_sorted() {
        for list in [
            FUNCTION_WORDS,
            VERBS,
            DETERMINERS,
            QUANTIFIERS,
            MEASURES,
            COUNTED_MEASURES,
            AUXILIARIES,
            INSTRUCTIONS,
            AGGREGATES,
            OPENINGS,
            COMPARISONS,
        ] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn finds_the_subject_of_a_question() {
        for (question, expected) in [
            ("List all employees", "employees"),
            ("How many flights were cancelled?", "flights"),
            ("Which hotel rooms has nobody booked?", "hotel rooms"),
            ("What is the average price of a flight?", "flight"),
            ("Please show me the names of the ten newest managers.", "managers"),
            ("Which year had the most power failures?", "power failures"),
            ("On average, how many days is a wheelchair kept?", "wheelchair"),
            ("Which charity spent the most hours on projects?", "charity"),
            ("How many flights departing from Rome are late?", "flights"),
            ("Who are our competitors in the US?", "competitors"),
            ("When was the first earthquake?", "earthquake"),
            ("What are the major cities in Alaska?", "cities"),
            ("What's the total number of singers?", "singers"),
            ("average commute per employee", "commute"),
            ("show the gate numbers in alphabetical order", "gate numbers"),
            ("When did Kim Wexler join?", ""),
            ("Who wrote Book 8?", ""),
            ("How many?", ""),
            ("", ""),
            ("\u{0}🦀 ???", ""),
        ] {
            let words = question_words(question);
            let found = subject(&words).unwrap_or_default().iter().map(|w| w.lower.as_str()).collect::<Vec<_>>();
            assert_eq!(found.join(" "), expected, "{question}");
        }
    }

    #[test]
    fn finds_words_that_qualify_the_subject() {
        for (question, expected) in [
            ("Which orders are unpaid?", &["unpaid"][..]),
            ("Which hardcover books cost more than 30?", &["hardcover"]),
            ("How many organic products do we sell?", &["organic"]),
            ("Which flights are there?", &[]),
            ("Show the five newest customers.", &[]),
        ] {
            let words = question_words(question);
            let found: Vec<&str> = qualifiers(&words).iter().map(|w| w.lower.as_str()).collect();
            assert_eq!(found, expected, "{question}");
        }
    }
}
