//! Which columns hold secrets, or data by which a person could be reached: never read unless they are allowed.

/// Whether an entry of the configuration means a column: `column`, `table.column`, with `*` for any letters.
pub(super) fn fits(entry: &str, table: &str, column: &str) -> bool {
    let entry = entry.trim().to_lowercase();
    let (table, column) = (table.to_lowercase(), column.to_lowercase());
    match entry.rsplit_once('.') {
        // A table may be named without its schema.
        Some((of, name)) => {
            let short = table.rsplit('.').next().unwrap_or_default();
            matches(name, &column) && (matches(of, &table) || matches(of, short))
        }
        None => matches(&entry, &column),
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| matches(after, &rest[at..]))
        }),
    }
}

/// Words of a column's name that say that it holds such data.
const WORDS: &[&str] = &[
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
/// The same where a name runs words together: long enough to stand in no other word.
const PIECES: &[&str] = &[
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

/// Whether the name of a column says so.
pub(super) fn by_name(name: &str) -> bool {
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
    words.iter().any(|w| WORDS.contains(&w.trim_end_matches(|c: char| c.is_ascii_digit())))
        || PIECES.iter().any(|piece| together.contains(piece))
        || number.iter().any(|piece| together.contains(piece))
}

/// Whether a good part of the values look so.
pub(super) fn by_look(values: &[String]) -> bool {
    let seen = values.iter().take(1_000);
    let suspect = seen.clone().filter(|v| looks_private(v)).count();
    let count = seen.count();
    // A single one among many may be a slip of the pen; a tenth of them is what the column is for.
    suspect > 0 && suspect * 10 >= count
}

fn looks_private(value: &str) -> bool {
    let value = value.trim();
    is_mail(value) || is_number_to_reach(value) || is_token(value)
}

fn is_mail(value: &str) -> bool {
    let Some((who, host)) = value.split_once('@') else { return false };
    !who.is_empty() && !who.contains(' ') && host.contains('.') && !host.contains(['@', ' ']) && host.len() > 3
}

/// A telephone number, a card, an account, a social security number: digits in groups, as people write them.
fn is_number_to_reach(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let other = value.chars().filter(|c| !c.is_ascii_digit()).count();
    let plain = value.chars().all(|c| c.is_ascii_digit() || " -+().x/".contains(c));
    // A date in digits has eight of them at most, a moment has colons.
    let social = value.len() == 11 && value.split('-').map(str::len).eq([3, 2, 4]);
    let card = (13..=19).contains(&digits) && luhn(value);
    plain
        && digits > other
        && (social || card || ((value.starts_with('+') || other >= 2) && (9..=15).contains(&digits)))
}

/// The checksum of card numbers.
fn luhn(value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| if i.is_multiple_of(2) { *d } else { d * 2 / 10 + d * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

/// Keys and hashes: long, without spaces, letters and digits mixed, no word of a language.
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
    fn f11_columns_that_look_like_secrets_are_told_by_their_names() {
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
            assert!(by_name(name), "{name}");
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
            assert!(!by_name(name), "{name}");
        }
    }

    #[test]
    fn f11_columns_that_look_like_secrets_are_told_by_their_values() {
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
            assert!(looks_private(value), "{value}");
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
            assert!(!looks_private(value), "{value}");
        }
        let many: Vec<String> = (0..50).map(|i| format!("word {i}")).collect();
        let one: Vec<String> = many.iter().cloned().chain(["jane@example.org".to_string()]).collect();
        assert!(!by_look(&many) && !by_look(&one) && by_look(&["jane@example.org".to_string()]));
    }

    #[test]
    fn f11_a_column_is_named_alone_or_with_its_table() {
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
            assert_eq!(fits(entry, "shop.customers", "Email"), fit, "{entry}");
        }
    }
}
