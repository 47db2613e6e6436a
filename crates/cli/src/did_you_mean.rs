//! Suggestions for misspelled names.

/// Returns the name most similar to `input` by Jaro-Winkler similarity, or `None` if none is close.
pub fn closest_name<'n>(input: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let given = input.to_lowercase();
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(&given, &name.to_lowercase()), name));
    scored.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_closest_name_for_a_typo() {
        let names = ["unknown-table", "unknown-column", "fan-out"];
        assert_eq!(closest_name("unknwon_column", names), Some("unknown-column"));
        assert_eq!(closest_name("Fanout", names), Some("fan-out"));
        assert_eq!(closest_name("zzz", names), None);
    }
}
