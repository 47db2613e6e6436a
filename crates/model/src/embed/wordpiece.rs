//! WordPiece tokenization as in BERT uncased: lower case, accents stripped, punctuation split,
//! longest match first.

use std::collections::HashMap;

/// Maximum length of a word; longer ones are unknown.
const MAX_WORD_CHARS: usize = 100;
/// Maximum length of a word piece.
const MAX_PIECE_CHARS: usize = 40;

/// Calls `on_piece` with the id of each word piece of a text; `unknown` is the id for words outside
/// the vocabulary.
///
/// Pieces inside a word start with `##`.
pub(super) fn for_each_piece(text: &str, vocabulary: &HashMap<&str, u32>, unknown: u32, mut on_piece: impl FnMut(u32)) {
    let mut word = String::with_capacity(64);
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if c.is_whitespace() || is_punctuation(c) {
            split_word(&mut word, vocabulary, unknown, &mut on_piece);
            if !c.is_whitespace() {
                on_piece(vocabulary.get(&*c.encode_utf8(&mut [0; 4])).copied().unwrap_or(unknown));
            }
        } else if !c.is_control() && !is_combining_mark(c) {
            for c in c.to_lowercase().filter(|c| !is_combining_mark(*c)) {
                match strip_accent(c) {
                    Some(letter) => word.push(letter),
                    None => word.push(c),
                }
            }
        }
    }
    split_word(&mut word, vocabulary, unknown, &mut on_piece);
}

/// Splits a word into its pieces and clears it.
fn split_word(word: &mut String, vocabulary: &HashMap<&str, u32>, unknown: u32, on_piece: &mut impl FnMut(u32)) {
    if word.is_empty() {
        return;
    }
    let mut numbers = [0_u32; MAX_WORD_CHARS];
    let mut count = 0;
    let mut start = 0;
    let mut is_known = word.len() <= 4 * MAX_WORD_CHARS && word.chars().count() <= MAX_WORD_CHARS;
    let mut inner = String::new();
    while is_known && start < word.len() {
        // Lookup key: the rest of the word, prefixed with `##` unless it is the start.
        let rest = if start == 0 {
            word.as_str()
        } else {
            inner.clear();
            inner.push_str("##");
            inner.push_str(&word[start..]);
            inner.as_str()
        };
        let before = if start == 0 { 0 } else { 2 };
        let last = rest.char_indices().nth(MAX_PIECE_CHARS + before).map_or(rest.len(), |(at, _)| at);
        let mut ends = (before + 1..=last).rev().filter(|end| rest.is_char_boundary(*end));
        match ends.find_map(|end| Some((end, *vocabulary.get(&rest[..end])?))) {
            Some((end, number)) => {
                numbers[count] = number;
                count += 1;
                start += end - before;
            }
            None => is_known = false,
        }
    }
    if is_known {
        numbers[..count].iter().for_each(|number| on_piece(*number));
    } else {
        on_piece(unknown);
    }
    word.clear();
}

/// Returns whether a character is punctuation or a word of its own, such as a CJK ideograph.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}')
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}')
        || matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff0f}')
}

fn is_combining_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Maps a lower-case accented Latin letter to its base letter. Distinct letters (`ß`, `ø`, `ł`) are
/// kept.
fn strip_accent(c: char) -> Option<char> {
    Some(match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ĥ' => 'h',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ǐ' => 'i',
        'ĵ' => 'j',
        'ķ' => 'k',
        'ĺ' | 'ļ' | 'ľ' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ō' | 'ŏ' | 'ő' | 'ơ' | 'ǒ' => 'o',
        'ŕ' | 'ŗ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => 's',
        'ţ' | 'ť' | 'ț' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ư' | 'ǔ' => 'u',
        'ŵ' => 'w',
        'ý' | 'ÿ' | 'ŷ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_words_into_the_longest_pieces() {
        let list = ["?", "how", "many", "sing", "##ers", "##er", "cafe", "[UNK]", "'", "s", "don", "中", "##s"];
        let vocabulary: HashMap<&str, u32> = list.iter().zip(0..).map(|(piece, number)| (*piece, number)).collect();
        let of = |text: &str| {
            let mut out = Vec::new();
            for_each_piece(text, &vocabulary, 7, |number| out.push(list[number as usize]));
            out.join(" ")
        };
        assert_eq!(of("How MANY singers?"), "how many sing ##ers ?");
        assert_eq!(of("singer's"), "sing ##er ' s");
        assert_eq!(of("Café cafe\u{301}s \t\u{0}\n CAFÉ"), "cafe cafe ##s cafe");
        assert_eq!(of("中how"), "中 how");
        assert_eq!(of("singxers how"), "[UNK] how");
        assert_eq!(of(&"s".repeat(101)), "[UNK]");
        assert_eq!(of(&"é".repeat(5000)), "[UNK]");
        assert_eq!(of(""), "");
    }
}
