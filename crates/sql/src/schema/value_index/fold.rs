//! Text folding for comparisons: removes case, accents, punctuation and redundant whitespace.

/// Folded word of a text with its byte span.
pub(crate) struct FoldedWord {
    pub(crate) folded: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// `true` if the word begins with a capital letter.
    pub(crate) is_capitalized: bool,
}

/// Folds a text to lower case without accents, its words separated by one space: ` Crème-Brûlée`
/// becomes `creme brulee`.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            push_folded(c, &mut out);
        } else if is_combining_mark(c) {
            continue;
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Returns whether a text equals a value, ignoring case, accents and whitespace around the text.
///
/// Whitespace around the value itself is significant: it is a data error, not a spelling variant.
pub(crate) fn is_same_ignoring_accents(value: &str, text: &str) -> bool {
    let letters = |text: &str| {
        let mut out = String::with_capacity(text.len());
        text.chars().filter(|c| !is_combining_mark(*c)).for_each(|c| push_folded(c, &mut out));
        out
    };
    letters(value) == letters(text.trim())
}

/// Splits a text into folded words with their byte spans.
pub(crate) fn split_words(text: &str) -> Vec<FoldedWord> {
    let mut out: Vec<FoldedWord> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() {
            if !open {
                out.push(FoldedWord { folded: String::new(), start: at, end: at, is_capitalized: c.is_uppercase() });
            }
            if let Some(word) = out.last_mut() {
                push_folded(c, &mut word.folded);
                word.end = at + c.len_utf8();
            }
            open = true;
        } else if !is_combining_mark(c) {
            open = false;
        }
    }
    out
}

/// Returns whether a word is common in questions regardless of their topic.
pub(crate) fn is_stop_word(word: &str) -> bool {
    const STOP_WORDS: &[&str] = &[
        "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "been", "before", "between", "by",
        "can", "count", "did", "do", "does", "each", "every", "find", "first", "for", "from", "get", "give", "had",
        "has", "have", "he", "her", "his", "how", "i", "id", "if", "in", "is", "it", "its", "last", "least", "less",
        "list", "many", "me", "more", "most", "much", "my", "name", "names", "no", "not", "number", "of", "on", "one",
        "only", "or", "other", "out", "over", "per", "she", "show", "some", "such", "tell", "than", "that", "the",
        "their", "them", "there", "these", "they", "this", "those", "to", "total", "two", "under", "up", "us", "was",
        "we", "were", "what", "when", "where", "which", "who", "whose", "why", "with", "without", "yes", "you",
    ];
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Returns whether a character is a combining accent, which follows its base letter.
fn is_combining_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

fn push_folded(c: char, out: &mut String) {
    if c.is_ascii() {
        return out.push(c.to_ascii_lowercase());
    }
    for lower in c.to_lowercase().filter(|c| !is_combining_mark(*c)) {
        let plain = match lower {
            'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' => "a",
            'æ' => "ae",
            'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
            'ď' | 'đ' | 'ð' => "d",
            'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
            'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
            'ĥ' | 'ħ' => "h",
            'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
            'ĵ' => "j",
            'ķ' => "k",
            'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
            'ñ' | 'ń' | 'ņ' | 'ň' => "n",
            'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
            'œ' => "oe",
            'ŕ' | 'ŗ' | 'ř' => "r",
            'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
            'ß' => "ss",
            'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
            'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
            'ŵ' => "w",
            'ý' | 'ÿ' | 'ŷ' => "y",
            'ź' | 'ż' | 'ž' => "z",
            other => {
                out.push(other);
                continue;
            }
        };
        out.push_str(plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_case_accents_and_punctuation() {
        for (text, plain) in [
            (" Crème-Brûlée ", "creme brulee"),
            ("Straße", "strasse"),
            ("cafe\u{301}", "cafe"),
            ("O'Neill", "o neill"),
            ("3-D Man", "3 d man"),
            ("東京", "東京"),
            ("", ""),
            (" - ", ""),
        ] {
            assert_eq!(fold(text), plain, "{text}");
        }
        let words: Vec<String> = split_words("Who is Zoë?").into_iter().map(|w| w.folded).collect();
        assert_eq!(words, ["who", "is", "zoe"]);
        assert!(is_stop_word("which") && is_stop_word("a") && is_stop_word("you") && !is_stop_word("marvel"));
    }
}
