//! Texts as they are compared: without case, accents, punctuation and superfluous spaces.

/// A word of a question.
pub(super) struct Word {
    pub(super) plain: String,
    pub(super) start: usize,
    pub(super) end: usize,
    /// It begins with a capital letter.
    pub(super) capital: bool,
}

/// A text in lower case, its accents taken off, its words apart by one space: ` Crème-Brûlée` becomes `creme brulee`.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            push(c, &mut out);
        } else if is_mark(c) {
            continue;
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Whether a text is a value but for case, accents and spaces around the text. Spaces that the value itself has around it are
/// a fault of the data, and no matter of spelling.
pub(super) fn is_same(value: &str, text: &str) -> bool {
    let letters = |text: &str| {
        let mut out = String::with_capacity(text.len());
        text.chars().filter(|c| !is_mark(*c)).for_each(|c| push(c, &mut out));
        out
    };
    letters(value) == letters(text.trim())
}

/// The words of a text, folded, each with its place.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() {
            if !open {
                out.push(Word { plain: String::new(), start: at, end: at, capital: c.is_uppercase() });
            }
            if let Some(word) = out.last_mut() {
                push(c, &mut word.plain);
                word.end = at + c.len_utf8();
            }
            open = true;
        } else if !is_mark(c) {
            open = false;
        }
    }
    out
}

/// Words that questions are made of, whatever they are about.
pub(super) fn is_common(word: &str) -> bool {
    const COMMON: &[&str] = &[
        "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "been", "before", "between", "by",
        "can", "count", "did", "do", "does", "each", "every", "find", "first", "for", "from", "get", "give", "had",
        "has", "have", "he", "her", "his", "how", "i", "id", "if", "in", "is", "it", "its", "last", "least", "less",
        "list", "many", "me", "more", "most", "much", "my", "name", "names", "no", "not", "number", "of", "on", "one",
        "only", "or", "other", "out", "over", "per", "she", "show", "some", "such", "tell", "than", "that", "the",
        "their", "them", "there", "these", "they", "this", "those", "to", "total", "two", "under", "up", "us", "was",
        "we", "were", "what", "when", "where", "which", "who", "whose", "why", "with", "without", "yes", "you",
    ];
    COMMON.binary_search(&word).is_ok()
}

/// Accents that stand for themselves behind their letter.
fn is_mark(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

fn push(c: char, out: &mut String) {
    if c.is_ascii() {
        return out.push(c.to_ascii_lowercase());
    }
    for lower in c.to_lowercase().filter(|c| !is_mark(*c)) {
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
    fn f11_case_accents_and_punctuation_do_not_count() {
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
        let words: Vec<String> = words("Who is Zoë?").into_iter().map(|w| w.plain).collect();
        assert_eq!(words, ["who", "is", "zoe"]);
        assert!(is_common("which") && is_common("a") && is_common("you") && !is_common("marvel"));
    }
}
