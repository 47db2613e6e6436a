//! Entries of table and column lists: names of one or more parts, each quoted or with `*` for any
//! characters.

/// Schemas in which an unqualified name is usually looked up.
const DEFAULT_SCHEMAS: [&str; 4] = ["main", "public", "default", "dbo"];

/// Part of an entry, in lower case.
pub(crate) struct NamePattern {
    text: String,
    quoted: bool,
}

impl NamePattern {
    fn is_wildcard(&self) -> bool {
        !self.quoted && self.text.chars().all(|c| c == '*')
    }

    /// Returns whether the part can match several names.
    pub(crate) fn has_wildcard(&self) -> bool {
        !self.quoted && self.text.contains('*')
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        if self.quoted || !self.text.contains('*') {
            return self.text == name;
        }
        // The first piece must be a prefix and the last a suffix; those in between are matched from
        // left to right.
        let mut pieces = self.text.split('*');
        let first = pieces.next().unwrap_or_default();
        let last = pieces.next_back().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
        pieces.all(|piece| match rest.find(piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    }
}

/// Parses an entry into its parts; the error states why it is invalid.
pub(crate) fn parse_entry(entry: &str) -> Result<Vec<NamePattern>, String> {
    let wrong = |why: &str| format!("`{entry}` is not a valid pattern: {why}");
    let mut parts = Vec::new();
    let mut rest = entry.trim();
    loop {
        let close = match rest.chars().next() {
            Some(open @ ('"' | '`')) => Some(open),
            Some('[') => Some(']'),
            _ => None,
        };
        let (part, after) = match close {
            Some(close) => {
                let Some(end) = rest[1..].find(close) else { return Err(wrong("a quote is not closed")) };
                (NamePattern { text: rest[1..=end].to_lowercase(), quoted: true }, rest[end + 2..].trim_start())
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let text = rest[..end].trim().to_lowercase();
                let plain = |c: char| c.is_alphanumeric() || "_$#@*- ".contains(c);
                if let Some(sign) = text.chars().find(|c| !plain(*c)) {
                    return Err(wrong(&format!(
                        "`{sign}` is allowed only in a name in double quotes; `*` matches any characters"
                    )));
                }
                (NamePattern { text, quoted: false }, &rest[end..])
            }
        };
        if part.text.is_empty() {
            return Err(wrong("a name is empty"));
        }
        parts.push(part);
        match after.strip_prefix('.') {
            Some(more) => rest = more.trim_start(),
            None if after.is_empty() => return Ok(parts),
            None => return Err(wrong("something follows a name in quotes")),
        }
    }
}

/// Matches an entry against a name, part by part from the right.
///
/// An entry with more parts than the name matches only if `missing_may_fit` is set and either at
/// least one overlapping part is not a wildcard or the next part to the left matches a default
/// schema. An entry that cannot be parsed matches if `missing_may_fit` is set, so that deny lists
/// fail closed.
pub(crate) fn entry_matches(entry: &str, parts: &[&str], missing_may_fit: bool) -> bool {
    parse_entry(entry).map_or(missing_may_fit, |entry| parts_match(&entry, parts, missing_may_fit))
}

pub(crate) fn parts_match(entry: &[NamePattern], parts: &[&str], missing_may_fit: bool) -> bool {
    let overlap = entry.iter().rev().zip(parts.iter().rev()).all(|(p, n)| p.matches(n));
    if !overlap || entry.len() <= parts.len() {
        return overlap;
    }
    let (missing, said) = entry.split_at(entry.len() - parts.len());
    let usual = || missing.last().is_some_and(|p| DEFAULT_SCHEMAS.iter().any(|usual| p.matches(usual)));
    missing_may_fit && (!said.iter().all(NamePattern::is_wildcard) || usual())
}

/// Splits an entry `table.column` into table and column; the error states why it is invalid.
pub(crate) fn parse_column_entry(entry: &str) -> Result<(Vec<NamePattern>, NamePattern), String> {
    let mut parts = parse_entry(entry)?;
    match parts.pop() {
        Some(column) if !parts.is_empty() => Ok((parts, column)),
        _ => Err(format!(
            "`{entry}` is not a valid pattern: a column is written after its table, `table.column` or `*.column`"
        )),
    }
}

/// Returns whether every name that `entry` matches is certainly matched by `wide`.
pub(crate) fn covers(wide: &str, entry: &str) -> bool {
    let Ok(parts) = parse_entry(entry) else { return false };
    // A `*` of the narrower entry is a literal character here, so only a `*` of `wide` matches it.
    let parts: Vec<&str> = parts.iter().map(|p| p.text.as_str()).collect();
    entry_matches(wide, &parts, false)
}
