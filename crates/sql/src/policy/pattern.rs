//! An entry of a list of tables: a name of one or more parts, each in quotes or with `*` for any letters.

/// Schemas that a name without one is usually looked up in.
const USUAL_SCHEMAS: [&str; 4] = ["main", "public", "default", "dbo"];

/// A part of an entry, in lower case.
pub(crate) struct Part {
    text: String,
    quoted: bool,
}

impl Part {
    fn is_star(&self) -> bool {
        !self.quoted && self.text.chars().all(|c| c == '*')
    }

    /// Whether it stands for several names.
    pub(super) fn is_open(&self) -> bool {
        !self.quoted && self.text.contains('*')
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn fits(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        if self.quoted || !self.text.contains('*') {
            return self.text == name;
        }
        // The first piece must begin the name and the last end it; those between are found from left to right.
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

/// The parts of an entry, or why it cannot be understood.
pub(super) fn read(entry: &str) -> Result<Vec<Part>, String> {
    let wrong = |why: &str| format!("`{entry}` cannot be understood: {why}");
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
                (Part { text: rest[1..=end].to_lowercase(), quoted: true }, rest[end + 2..].trim_start())
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let text = rest[..end].trim().to_lowercase();
                let plain = |c: char| c.is_alphanumeric() || "_$#@*- ".contains(c);
                if let Some(sign) = text.chars().find(|c| !plain(*c)) {
                    return Err(wrong(&format!(
                        "`{sign}` only stands in a name in double quotes; any letters are `*`"
                    )));
                }
                (Part { text, quoted: false }, &rest[end..])
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

/// Compares an entry with a name part by part from the right. An entry with more parts than the name fits only if the
/// missing ones may be anything, and something of the name is said, or a usual schema is. An entry that cannot be
/// understood fits where that is the careful answer.
pub(super) fn fits(entry: &str, parts: &[&str], missing_may_fit: bool) -> bool {
    read(entry).map_or(missing_may_fit, |entry| fits_parts(&entry, parts, missing_may_fit))
}

pub(super) fn fits_parts(entry: &[Part], parts: &[&str], missing_may_fit: bool) -> bool {
    let overlap = entry.iter().rev().zip(parts.iter().rev()).all(|(p, n)| p.fits(n));
    if !overlap || entry.len() <= parts.len() {
        return overlap;
    }
    let (missing, said) = entry.split_at(entry.len() - parts.len());
    let usual = || missing.last().is_some_and(|p| USUAL_SCHEMAS.iter().any(|usual| p.fits(usual)));
    missing_may_fit && (!said.iter().all(Part::is_star) || usual())
}

/// The table and the column of an entry `table.column`, or why it cannot be understood.
pub(super) fn read_column(entry: &str) -> Result<(Vec<Part>, Part), String> {
    let mut parts = read(entry)?;
    match parts.pop() {
        Some(column) if !parts.is_empty() => Ok((parts, column)),
        _ => Err(format!(
            "`{entry}` cannot be understood: a column stands behind its table, `table.column` or `*.column`"
        )),
    }
}

/// Whether all that an entry fits surely also fits another.
pub(super) fn covers(wide: &str, entry: &str) -> bool {
    let Ok(parts) = read(entry) else { return false };
    // A star in the narrower one is then only matched by a star.
    let parts: Vec<&str> = parts.iter().map(|p| p.text.as_str()).collect();
    fits(wide, &parts, false)
}
