//! Similarity of identifiers, to find the existing name that was meant.

/// Returns the candidate most similar to a name: equal except for case, underscores and plural,
/// containing all of its words, or a few letters off. `None` if no candidate is close.
pub(crate) fn best_match<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let mut best: Option<(f64, &'c str)> = None;
    for candidate in candidates {
        let score = identifier_similarity(name, candidate);
        if score >= 0.75 && best.is_none_or(|(b, _)| score > b) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// Returns the similarity of two identifiers, from 0 to 1.
pub(crate) fn identifier_similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (NormalizedIdentifier::of(a), NormalizedIdentifier::of(b));
    if a.text == b.text {
        return 1.0;
    }
    if is_plural_of(&a.text, &b.text) || is_plural_of(&b.text, &a.text) {
        return 0.98;
    }
    let (few, many) = if a.word_ends.len() <= b.word_ends.len() { (&a, &b) } else { (&b, &a) };
    if !few.word_ends.is_empty() && few.words().all(|w| many.words().any(|m| m == w)) {
        // `id` is in `product_id`, `name` in `first_name`: the larger the share, the higher the
        // score.
        return 0.76 + 0.2 * few.word_ends.len() as f64 / many.word_ends.len() as f64;
    }
    let letters = edit_similarity(&a.text, &b.text);
    if a.text.len().min(b.text.len()) <= 3 { letters * 0.9 } else { letters }
}

/// Returns whether the similarity of two identifiers is at least `min_score`.
///
/// From 0.95 on, hardly anything but the same word qualifies. Nearly all pairs do not, and many of
/// those are rejected by counting letters.
pub(crate) fn is_similar(a: &str, b: &str, min_score: f64) -> bool {
    !(min_score >= 0.95 && quick_reject(a, b)) && identifier_similarity(a, b) >= min_score
}

/// Returns whether two short names, one of them a single word, are neither the same word nor
/// singular and plural of one word. A plural begins like its singular.
fn quick_reject(a: &str, b: &str) -> bool {
    let letters = |name: &str| name.bytes().filter(u8::is_ascii_alphanumeric).count();
    let first = |name: &str| name.bytes().find(u8::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase());
    let (few, many) = (letters(a).min(letters(b)), letters(a).max(letters(b)));
    // At 0.95, one of twenty letters may differ; a plural turns `y` into `ies`.
    let is_short = few > 1 && many < 20 && a.is_ascii() && b.is_ascii();
    let is_word = |name: &str| name.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    is_short && few != many && (many - few > 2 || first(a) != first(b)) && (is_word(a) || is_word(b))
}

/// Returns whether a name has all words of another and more: a dropped word may be what was meant.
pub(crate) fn has_extra_words(name: &str, other: &str) -> bool {
    let (name, other) = (identifier_words(name), identifier_words(other));
    let is_same = |a: &String, b: &String| a == b || is_plural_of(a, b) || is_plural_of(b, a);
    name.len() > other.len() && other.iter().all(|b| name.iter().any(|a| is_same(a, b)))
}

/// Returns whether the Damerau-Levenshtein distance of two words is 1: one letter was dropped,
/// added, changed or swapped.
pub(crate) fn is_typo(word: &str, meant: &str) -> bool {
    word != meant && strsim::damerau_levenshtein(word, meant) == 1
}

/// Returns the normalized Damerau-Levenshtein similarity of two words, from 0 to 1.
fn edit_similarity(a: &str, b: &str) -> f64 {
    if !a.is_ascii() || !b.is_ascii() || a.len() > MAX_STACK_LENGTH || b.len() > MAX_STACK_LENGTH {
        return strsim::normalized_damerau_levenshtein(a, b);
    }
    match a.len().max(b.len()) {
        0 => 1.0,
        longer => 1.0 - f64::from(damerau_levenshtein(a.as_bytes(), b.as_bytes())) / longer as f64,
    }
}

/// Maximum length of names compared without a heap allocation, in bytes; names are seldom longer.
const MAX_STACK_LENGTH: usize = 30;

/// Returns the Damerau-Levenshtein distance.
///
/// Equal to that of `strsim`, whose setup takes far longer than comparing a short name: names are
/// compared with every column in scope.
fn damerau_levenshtein(a: &[u8], b: &[u8]) -> u8 {
    // Row and column 0 are a sentinel above any distance, row and column 1 are the empty string.
    let mut table = [[0u8; MAX_STACK_LENGTH + 2]; MAX_STACK_LENGTH + 2];
    let far = (a.len() + b.len()) as u8;
    table[0] = [far; MAX_STACK_LENGTH + 2];
    for (i, row) in table.iter_mut().enumerate().skip(1) {
        (row[0], row[1]) = (far, i as u8 - 1);
    }
    for (j, cell) in table[1].iter_mut().enumerate().skip(1) {
        *cell = j as u8 - 1;
    }
    // Row in which each letter last occurred.
    let mut seen = [0usize; 128];
    for (i, &x) in a.iter().enumerate() {
        let mut column = 0;
        for (j, &y) in b.iter().enumerate() {
            let (k, l) = (seen[usize::from(y & 127)], column);
            let swapped = table[k][l] + ((i - k) + 1 + (j - l)) as u8;
            let changed = table[i + 1][j + 1] + u8::from(x != y);
            if x == y {
                column = j + 1;
            }
            let moved = table[i + 2][j + 1].min(table[i + 1][j + 2]) + 1;
            table[i + 2][j + 2] = swapped.min(changed).min(moved);
        }
        seen[usize::from(x & 127)] = i + 1;
    }
    table[a.len() + 1][b.len() + 1]
}

/// Returns whether one word is the plural of the other: `shoes`, `heroes`, `countries`.
fn is_plural_of(many: &str, one: &str) -> bool {
    match many.strip_prefix(one) {
        Some(end) => ["s", "es"].contains(&end),
        None => one.strip_suffix('y').is_some_and(|stem| many.strip_prefix(stem) == Some("ies")),
    }
}

/// An identifier normalized for comparison: its letters and digits in lower case, and the ends of
/// its words.
///
/// `customerFirst_name` → `customerfirstname`, with words that end at 8, 13 and 17
struct NormalizedIdentifier {
    text: String,
    word_ends: Vec<usize>,
}

impl NormalizedIdentifier {
    fn of(name: &str) -> Self {
        let mut letters = String::with_capacity(name.len());
        let mut ends: Vec<usize> = Vec::with_capacity(4);
        let mut before_lower = false;
        for c in name.chars() {
            let cuts = !c.is_alphanumeric() || (c.is_uppercase() && before_lower);
            if cuts && letters.len() > ends.last().copied().unwrap_or(0) {
                ends.push(letters.len());
            }
            if c.is_ascii_alphanumeric() {
                letters.push(c.to_ascii_lowercase());
            } else if c.is_alphanumeric() {
                letters.extend(c.to_lowercase());
            }
            before_lower = c.is_lowercase();
        }
        if letters.len() > ends.last().copied().unwrap_or(0) {
            ends.push(letters.len());
        }
        Self { text: letters, word_ends: ends }
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.word_ends.iter().copied());
        starts.zip(&self.word_ends).map(|(start, end)| &self.text[start..*end])
    }
}

/// Splits an identifier into words, in lower case: `FirstName` and `first_name` are the same.
pub(crate) fn identifier_words(name: &str) -> Vec<String> {
    NormalizedIdentifier::of(name).words().map(str::to_string).collect()
}

/// Prefixes and words that turn a name into its opposite.
const NEGATIONS: &[&str] = &["un", "non", "not", "no", "in", "im", "dis"];
/// Minimum length of a negated word: `in` + `put` is not a negation of `put`.
const MIN_NEGATED_LENGTH: usize = 5;

/// Returns whether one name is the negation of the other, such as `unshipped_on` and `shipped_on`.
pub(crate) fn is_negation(a: &str, b: &str) -> bool {
    let (a, b) = (identifier_words(a), identifier_words(b));
    let (longer, shorter) = if a.concat().len() > b.concat().len() { (a, b) } else { (b, a) };
    let without_word: Vec<&String> = longer.iter().filter(|word| !NEGATIONS.contains(&word.as_str())).collect();
    if longer.len() > shorter.len() {
        return without_word.into_iter().eq(&shorter);
    }
    let mut differing = longer.iter().zip(&shorter).filter(|(long, short)| long != short);
    let (Some((long, short)), None) = (differing.next(), differing.next()) else { return false };
    short.len() >= MIN_NEGATED_LENGTH && long.strip_suffix(short.as_str()).is_some_and(|rest| NEGATIONS.contains(&rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_names_of_opposite_meaning() {
        for (a, b, expected) in [
            ("unshipped_on", "shipped_on", true),
            ("active", "inactive", true),
            ("not_discontinued", "discontinued", true),
            ("non_member", "member", true),
            ("input", "put", false),
            ("first_name", "name", false),
            ("shiped_on", "shipped_on", false),
            ("status", "status", false),
        ] {
            assert_eq!(is_negation(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn matches_misspelled_identifiers() {
        for (name, candidates, found) in [
            ("id", vec!["name", "product_id", "price"], Some("product_id")),
            ("CustomerName", vec!["customer_name", "customer_id"], Some("customer_name")),
            ("prodcts", vec!["orders", "products"], Some("products")),
            ("product", vec!["products", "product_lines"], Some("products")),
            ("price", vec!["title", "year"], None),
        ] {
            assert_eq!(best_match(name, candidates), found, "{name}");
        }
    }

    #[test]
    fn edit_distance_agrees_with_strsim() {
        let names =
            ["", "a", "ab", "ba", "rain", "name", "customerid", "cutsomerid", "abcabc", "bcaacb", "acb", "x9y", "aaab"];
        for a in names {
            for b in names {
                assert_eq!(
                    usize::from(damerau_levenshtein(a.as_bytes(), b.as_bytes())),
                    strsim::damerau_levenshtein(a, b),
                    "{a} {b}"
                );
                assert!(
                    (edit_similarity(a, b) - strsim::normalized_damerau_levenshtein(a, b)).abs() < 1e-12,
                    "{a} {b}"
                );
            }
        }
    }

    #[test]
    fn quick_reject_agrees_with_full_similarity() {
        let names = [
            "",
            "_",
            "s",
            "y",
            "ies",
            "id",
            "ids",
            "name",
            "names",
            "Name_First",
            "first_name",
            "firstName",
            "hero",
            "heroes",
            "city",
            "cities",
            "product_id",
            "products",
            "order_status",
            "status",
            "a_rather_long_name_indeed",
            "a_rather_long_name_inded",
            "straße",
            "x9",
            "9x",
            "id_id",
        ];
        for a in names {
            for b in names {
                for least in [0.75, 0.95, 0.98, 1.0] {
                    assert_eq!(is_similar(a, b, least), identifier_similarity(a, b) >= least, "{a} {b} {least}");
                }
            }
        }
        assert!(quick_reject("id", "price") && quick_reject("order_date", "price"));
    }

    #[test]
    fn splits_identifiers_into_words() {
        for (name, words) in [
            ("customerFirst_name", vec!["customer", "first", "name"]),
            ("__id", vec!["id"]),
            ("HTTPServer", vec!["httpserver"]),
            ("Straße Ü9", vec!["straße", "ü9"]),
            ("_", vec![]),
        ] {
            assert_eq!(NormalizedIdentifier::of(name).words().collect::<Vec<_>>(), words, "{name}");
        }
    }
}
