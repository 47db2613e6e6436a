//! Texts in word pieces, as BERT's vocabulary has them: lower case, no accents, each mark a word, the longest piece first.

use std::collections::HashMap;

/// A word longer than this is no word.
const LONGEST_WORD: usize = 100;
/// No piece has more letters.
const LONGEST_PIECE: usize = 40;

/// Calls `found` with the number of each piece of a text; `unknown` is the number of what cannot be made of pieces.
/// Pieces within a word begin with `##`.
pub(super) fn each(text: &str, vocabulary: &HashMap<&str, u32>, unknown: u32, mut found: impl FnMut(u32)) {
    let mut word = String::with_capacity(64);
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if c.is_whitespace() || is_mark(c) {
            split(&mut word, vocabulary, unknown, &mut found);
            if !c.is_whitespace() {
                found(vocabulary.get(&*c.encode_utf8(&mut [0; 4])).copied().unwrap_or(unknown));
            }
        } else if !c.is_control() && !is_accent(c) {
            for c in c.to_lowercase().filter(|c| !is_accent(*c)) {
                match plain(c) {
                    Some(letter) => word.push(letter),
                    None => word.push(c),
                }
            }
        }
    }
    split(&mut word, vocabulary, unknown, &mut found);
}

/// Gives the pieces of a word, and empties it.
fn split(word: &mut String, vocabulary: &HashMap<&str, u32>, unknown: u32, found: &mut impl FnMut(u32)) {
    if word.is_empty() {
        return;
    }
    let mut numbers = [0_u32; LONGEST_WORD];
    let mut count = 0;
    let mut start = 0;
    let mut whole = word.len() <= 4 * LONGEST_WORD && word.chars().count() <= LONGEST_WORD;
    let mut inner = String::new();
    while whole && start < word.len() {
        // What is looked up: the rest of the word, and `##` before it if it is not the beginning.
        let rest = if start == 0 {
            word.as_str()
        } else {
            inner.clear();
            inner.push_str("##");
            inner.push_str(&word[start..]);
            inner.as_str()
        };
        let before = if start == 0 { 0 } else { 2 };
        let last = rest.char_indices().nth(LONGEST_PIECE + before).map_or(rest.len(), |(at, _)| at);
        let mut ends = (before + 1..=last).rev().filter(|end| rest.is_char_boundary(*end));
        match ends.find_map(|end| Some((end, *vocabulary.get(&rest[..end])?))) {
            Some((end, number)) => {
                numbers[count] = number;
                count += 1;
                start += end - before;
            }
            None => whole = false,
        }
    }
    if whole {
        numbers[..count].iter().for_each(|number| found(*number));
    } else {
        found(unknown);
    }
    word.clear();
}

/// Punctuation, and characters that are words by themselves.
fn is_mark(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}')
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}')
        || matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff0f}')
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// The plain letter of a lower-case Latin letter with an accent. Letters that are more than that (`ß`, `ø`, `ł`) stay.
fn plain(c: char) -> Option<char> {
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
    fn words_fall_into_the_longest_pieces() {
        let list = ["?", "how", "many", "sing", "##ers", "##er", "cafe", "[UNK]", "'", "s", "don", "中", "##s"];
        let vocabulary: HashMap<&str, u32> = list.iter().zip(0..).map(|(piece, number)| (*piece, number)).collect();
        let of = |text: &str| {
            let mut out = Vec::new();
            each(text, &vocabulary, 7, |number| out.push(list[number as usize]));
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
