//! Which of the names that exist was meant.

/// The name most like the given one, if one is close.
pub fn nearest<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let given = given.to_lowercase();
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(&given, &name.to_lowercase()), name));
    scored.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_mistype_is_found() {
        let names = ["unknown-table", "unknown-column", "fan-out"];
        assert_eq!(nearest("unknwon_column", names), Some("unknown-column"));
        assert_eq!(nearest("Fanout", names), Some("fan-out"));
        assert_eq!(nearest("zzz", names), None);
    }
}
