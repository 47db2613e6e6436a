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
    let (na, nb) = (plain(a), plain(b));
    if na == nb {
        return 1.0;
    }
    if plural(&na, &nb) || plural(&nb, &na) {
        return 0.98;
    }
    let (wa, wb) = (words(a), words(b));
    let (few, many) = if wa.len() <= wb.len() { (&wa, &wb) } else { (&wb, &wa) };
    if !few.is_empty() && few.iter().all(|w| many.contains(w)) {
        // `id` is in `product_id`, `name` in `first_name`: the more of it, the better.
        return 0.76 + 0.2 * few.len() as f64 / many.len() as f64;
    }
    let letters = strsim::normalized_damerau_levenshtein(&na, &nb);
    if na.len().min(nb.len()) <= 3 { letters * 0.9 } else { letters }
}

/// Whether a word is another but for one letter that was dropped, doubled, changed or swapped.
pub(crate) fn is_slip(word: &str, meant: &str) -> bool {
    word != meant && strsim::damerau_levenshtein(word, meant) == 1
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether one word is the plural of the other: `shoes`, `heroes`, `countries`.
fn plural(many: &str, one: &str) -> bool {
    match many.strip_prefix(one) {
        Some(end) => ["s", "es"].contains(&end),
        None => one.strip_suffix('y').is_some_and(|stem| many.strip_prefix(stem) == Some("ies")),
    }
}

/// `customerFirst_name` → customer, first, name
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    let mut before_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            out.push(String::new());
        } else {
            if c.is_uppercase() && before_lower {
                out.push(String::new());
            }
            if let Some(last) = out.last_mut() {
                last.extend(c.to_lowercase());
            }
        }
        before_lower = c.is_lowercase();
    }
    out.retain(|w| !w.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
