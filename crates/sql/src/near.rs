//! Which of the names that exist was meant.

/// The candidate most like a name: the same but for case, underscores and plural; containing it word by word; or a
/// few letters off. `None` if nothing is close.
pub(crate) fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let mut best: Option<(f64, &'c str)> = None;
    for candidate in candidates {
        let score = likeness(name, candidate);
        if score >= 0.75 && best.is_none_or(|(b, _)| score > b) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, c)| c)
}

/// From 0 to 1.
pub(crate) fn likeness(a: &str, b: &str) -> f64 {
    let (a, b) = (Spelt::of(a), Spelt::of(b));
    if a.letters == b.letters {
        return 1.0;
    }
    if plural(&a.letters, &b.letters) || plural(&b.letters, &a.letters) {
        return 0.98;
    }
    let (few, many) = if a.ends.len() <= b.ends.len() { (&a, &b) } else { (&b, &a) };
    if !few.ends.is_empty() && few.words().all(|w| many.words().any(|m| m == w)) {
        // `id` is in `product_id`, `name` in `first_name`: the more of it, the better.
        return 0.76 + 0.2 * few.ends.len() as f64 / many.ends.len() as f64;
    }
    let letters = alike(&a.letters, &b.letters);
    if a.letters.len().min(b.letters.len()) <= 3 { letters * 0.9 } else { letters }
}

/// Whether two names are at least so like, for those who take little but the same word: 0.95 or more. Nearly all names that are
/// compared are not, and many of those are told apart by counting letters.
pub(crate) fn is_nearly(a: &str, b: &str, least: f64) -> bool {
    !(least >= 0.95 && differ_plainly(a, b)) && likeness(a, b) >= least
}

/// Whether two names of few letters, one of them a single word, are neither the same word nor one the plural of the other, which
/// begins like it.
fn differ_plainly(a: &str, b: &str) -> bool {
    let letters = |name: &str| name.bytes().filter(u8::is_ascii_alphanumeric).count();
    let first = |name: &str| name.bytes().find(u8::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase());
    let (few, many) = (letters(a).min(letters(b)), letters(a).max(letters(b)));
    // Of twenty letters one may differ, and `y` becomes `ies`.
    let is_short = few > 1 && many < 20 && a.is_ascii() && b.is_ascii();
    let is_word = |name: &str| name.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    is_short && few != many && (many - few > 2 || first(a) != first(b)) && (is_word(a) || is_word(b))
}

/// Whether a name has all words of another and more: what is dropped may be what was meant.
pub(crate) fn drops_words(name: &str, other: &str) -> bool {
    let (name, other) = (words_of(name), words_of(other));
    let is_same = |a: &String, b: &String| a == b || plural(a, b) || plural(b, a);
    name.len() > other.len() && other.iter().all(|b| name.iter().any(|a| is_same(a, b)))
}

/// Whether a word is another but for one letter that was dropped, doubled, changed or swapped.
pub(crate) fn is_slip(word: &str, meant: &str) -> bool {
    word != meant && strsim::damerau_levenshtein(word, meant) == 1
}

/// How much of two words is the same, by the letters that must be dropped, added, changed or swapped: from 0 to 1.
fn alike(a: &str, b: &str) -> f64 {
    if !a.is_ascii() || !b.is_ascii() || a.len() > SHORT || b.len() > SHORT {
        return strsim::normalized_damerau_levenshtein(a, b);
    }
    match a.len().max(b.len()) {
        0 => 1.0,
        longer => 1.0 - f64::from(apart(a.as_bytes(), b.as_bytes())) / longer as f64,
    }
}

/// Names are seldom longer, and the table of such short ones needs no memory of its own.
const SHORT: usize = 30;

/// The same distance as `strsim`'s, which takes far longer to set itself up than a short name takes to compare: names are
/// compared with every column in reach.
fn apart(a: &[u8], b: &[u8]) -> u8 {
    // Row and column 0 stand for what is farther than anything, 1 for the empty word.
    let mut table = [[0u8; SHORT + 2]; SHORT + 2];
    let far = (a.len() + b.len()) as u8;
    table[0] = [far; SHORT + 2];
    for (i, row) in table.iter_mut().enumerate().skip(1) {
        (row[0], row[1]) = (far, i as u8 - 1);
    }
    for (j, cell) in table[1].iter_mut().enumerate().skip(1) {
        *cell = j as u8 - 1;
    }
    // The row in which each letter was last seen.
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

/// Whether one word is the plural of the other: `shoes`, `heroes`, `countries`.
fn plural(many: &str, one: &str) -> bool {
    match many.strip_prefix(one) {
        Some(end) => ["s", "es"].contains(&end),
        None => one.strip_suffix('y').is_some_and(|stem| many.strip_prefix(stem) == Some("ies")),
    }
}

/// A name as it is compared: its letters and digits in lower case, and where its words end among them.
/// `customerFirst_name` → `customerfirstname`, ending at 8, 13 and 17
struct Spelt {
    letters: String,
    ends: Vec<usize>,
}

impl Spelt {
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
        Self { letters, ends }
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.letters[start..*end])
    }
}

/// The words of a name, in lower case: `FirstName` and `first_name` are the same.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    Spelt::of(name).words().map(str::to_string).collect()
}

/// Prefixes and words that turn a name into its opposite.
const NEGATIONS: &[&str] = &["un", "non", "not", "no", "in", "im", "dis"];
/// Minimum length of a word that a negation is read off: `in` + `put` is no negation of `put`.
const MIN_NEGATED_LENGTH: usize = 5;

/// Returns whether one of two names is the other with a negation, such as `unshipped_on` and `shipped_on`.
pub(crate) fn is_negation(a: &str, b: &str) -> bool {
    let (a, b) = (words_of(a), words_of(b));
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
    fn what_people_mistype_is_found() {
        for (name, candidates, found) in [
            ("id", vec!["name", "product_id", "price"], Some("product_id")),
            ("CustomerName", vec!["customer_name", "customer_id"], Some("customer_name")),
            ("prodcts", vec!["orders", "products"], Some("products")),
            ("product", vec!["products", "product_lines"], Some("products")),
            ("price", vec!["title", "year"], None),
        ] {
            assert_eq!(nearest(name, candidates), found, "{name}");
        }
    }

    #[test]
    fn short_names_are_as_far_apart_as_the_library_says() {
        let names =
            ["", "a", "ab", "ba", "rain", "name", "customerid", "cutsomerid", "abcabc", "bcaacb", "acb", "x9y", "aaab"];
        for a in names {
            for b in names {
                assert_eq!(
                    usize::from(apart(a.as_bytes(), b.as_bytes())),
                    strsim::damerau_levenshtein(a, b),
                    "{a} {b}"
                );
                assert!((alike(a, b) - strsim::normalized_damerau_levenshtein(a, b)).abs() < 1e-12, "{a} {b}");
            }
        }
    }

    #[test]
    fn what_is_told_apart_plainly_is_not_alike() {
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
                    assert_eq!(is_nearly(a, b, least), likeness(a, b) >= least, "{a} {b} {least}");
                }
            }
        }
        assert!(differ_plainly("id", "price") && differ_plainly("order_date", "price"));
    }

    #[test]
    fn words_end_where_they_are_told_apart() {
        for (name, words) in [
            ("customerFirst_name", vec!["customer", "first", "name"]),
            ("__id", vec!["id"]),
            ("HTTPServer", vec!["httpserver"]),
            ("Straße Ü9", vec!["straße", "ü9"]),
            ("_", vec![]),
        ] {
            assert_eq!(Spelt::of(name).words().collect::<Vec<_>>(), words, "{name}");
        }
    }
}
