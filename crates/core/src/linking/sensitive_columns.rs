//! Detects columns with secrets or personal contact data.
//!
//! They are never read unless explicitly allowed.

/// Returns whether a configuration entry matches a column.
///
/// Entries are `column` or `table.column`, with `*` as wildcard.
pub(crate) fn matches_entry(entry: &str, table: &str, column: &str) -> bool {
    let entry = entry.trim().to_lowercase();
    let (table, column) = (table.to_lowercase(), column.to_lowercase());
    match entry.rsplit_once('.') {
        // The schema of the table may be omitted.
        Some((of, name)) => {
            let short = table.rsplit('.').next().unwrap_or_default();
            matches_wildcard(name, &column) && (matches_wildcard(of, &table) || matches_wildcard(of, short))
        }
        None => matches_wildcard(&entry, &column),
    }
}

fn matches_wildcard(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| matches_wildcard(after, &rest[at..]))
        }),
    }
}

/// Words in column names that indicate sensitive data.
const SENSITIVE_WORDS: &[&str] = &[
    "address",
    "addr",
    "apikey",
    "auth",
    "bic",
    "birthdate",
    "birthday",
    "card",
    "cc",
    "cellphone",
    "credential",
    "credentials",
    "cvc",
    "cvv",
    "dob",
    "email",
    "fax",
    "hash",
    "iban",
    "ip",
    "ipaddress",
    "key",
    "latitude",
    "license",
    "longitude",
    "mail",
    "mobile",
    "nonce",
    "otp",
    "pan",
    "passcode",
    "passphrase",
    "passport",
    "passwd",
    "password",
    "phone",
    "pin",
    "postcode",
    "private",
    "pwd",
    "salt",
    "secret",
    "session",
    "signature",
    "sin",
    "social",
    "ssn",
    "street",
    "swift",
    "taxid",
    "telephone",
    "token",
    "vat",
    "zip",
    "zipcode",
];
/// Substrings of column names that indicate sensitive data. Long enough not to occur by chance.
const SENSITIVE_SUBSTRINGS: &[&str] = &[
    "address",
    "apikey",
    "credential",
    "creditcard",
    "email",
    "iban",
    "passcode",
    "passport",
    "passwd",
    "password",
    "phone",
    "secret",
    "ssn",
    "token",
];

/// Returns whether the name of a column indicates sensitive data.
pub(crate) fn is_sensitive_name(name: &str) -> bool {
    let mut words: Vec<String> = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    let together = words.concat();
    let number = ["cardnumber", "accountnumber", "accountno", "taxnumber", "idnumber", "socialsecurity"];
    words.iter().any(|w| SENSITIVE_WORDS.contains(&w.trim_end_matches(|c: char| c.is_ascii_digit())))
        || SENSITIVE_SUBSTRINGS.iter().any(|piece| together.contains(piece))
        || number.iter().any(|piece| together.contains(piece))
}

/// Returns whether a significant fraction of the values looks sensitive.
pub(crate) fn has_sensitive_values(values: &[String]) -> bool {
    let seen = values.iter().take(1_000);
    let suspect = seen.clone().filter(|v| is_sensitive_value(v)).count();
    let count = seen.count();
    // A single match among many may be a data entry error; ten percent indicate the purpose of the
    // column.
    suspect > 0 && suspect * 10 >= count
}

fn is_sensitive_value(value: &str) -> bool {
    let value = value.trim();
    is_email(value) || is_contact_number(value) || is_token(value)
}

fn is_email(value: &str) -> bool {
    let Some((who, host)) = value.split_once('@') else { return false };
    !who.is_empty() && !who.contains(' ') && host.contains('.') && !host.contains(['@', ' ']) && host.len() > 3
}

/// Returns whether the value is a phone, card, account or social security number: digits in groups.
fn is_contact_number(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let other = value.chars().filter(|c| !c.is_ascii_digit()).count();
    let plain = value.chars().all(|c| c.is_ascii_digit() || " -+().x/".contains(c));
    // Dates have at most eight digits, and timestamps contain colons.
    let social = value.len() == 11 && value.split('-').map(str::len).eq([3, 2, 4]);
    let card = (13..=19).contains(&digits) && is_luhn_valid(value);
    plain
        && digits > other
        && (social || card || ((value.starts_with('+') || other >= 2) && (9..=15).contains(&digits)))
}

/// Returns whether the digits pass the Luhn checksum of card numbers.
fn is_luhn_valid(value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| if i.is_multiple_of(2) { *d } else { d * 2 / 10 + d * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

/// Returns whether the value looks like a key or hash: long, no spaces, mixed letters and digits.
fn is_token(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(char::is_ascii_alphabetic).count();
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+/=$:".contains(c));
    let hex = value.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let begins =
        ["sk-", "pk_", "ghp_", "xox", "eyJ", "AKIA", "$2a$", "$2b$", "$argon2"].iter().any(|b| value.starts_with(b));
    plain && value.len() >= 20 && (begins || (digits >= 4 && letters >= 4 && (hex || value.len() >= 32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_sensitive_columns_by_name() {
        for name in [
            "password",
            "Password_Hash",
            "userEmail",
            "e_mail",
            "PHONE",
            "phone2",
            "ssn",
            "card_number",
            "apiToken",
            "home_address",
            "AddressLine1",
            "dob",
            "zip",
            "session_key",
            "TAXID",
            "customerpassword",
        ] {
            assert!(is_sensitive_name(name), "{name}");
        }
        for name in [
            "name",
            "country",
            "publisher_name",
            "category",
            "status",
            "keyword",
            "monkey",
            "cardinality",
            "zipper",
            "hometown",
            "description",
            "passenger",
            "alignment",
            "Model",
            "shipping",
            "discard",
        ] {
            assert!(!is_sensitive_name(name), "{name}");
        }
    }

    #[test]
    fn detects_sensitive_columns_by_value() {
        for value in [
            "jane@example.org",
            "+49 30 1234567",
            "(555) 123-4567",
            "555-123-4567",
            "078-05-1120",
            "4111 1111 1111 1111",
            "sk-abcdefghijklmnopqrstuv12",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "192-83-7465",
        ] {
            assert!(is_sensitive_value(value), "{value}");
        }
        for value in [
            "Marvel Comics",
            "2014-01-31",
            "2014-01-31 12:30:00",
            "20140131",
            "3-D Man",
            "ISBN",
            "12",
            "1970",
            "a@b",
            "amc hornet sportabout (sw)",
            "Supercalifragilisticexpialidocious",
            "100-200",
            "DE-1234",
        ] {
            assert!(!is_sensitive_value(value), "{value}");
        }
        let many: Vec<String> = (0..50).map(|i| format!("word {i}")).collect();
        let one: Vec<String> = many.iter().cloned().chain(["jane@example.org".to_string()]).collect();
        assert!(
            !has_sensitive_values(&many)
                && !has_sensitive_values(&one)
                && has_sensitive_values(&["jane@example.org".to_string()])
        );
    }

    #[test]
    fn matches_column_entries_with_or_without_table() {
        for (entry, fit) in [
            ("email", true),
            ("customers.email", true),
            ("shop.customers.email", true),
            ("CUSTOMERS.*", true),
            ("e*l", true),
            ("*.email", true),
            ("orders.email", false),
            ("mail", false),
            ("*", true),
            ("", false),
        ] {
            assert_eq!(matches_entry(entry, "shop.customers", "Email"), fit, "{entry}");
        }
    }
}
