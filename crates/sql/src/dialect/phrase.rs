//! What functions mean, whatever they are called, and how each dialect says it.

/// Something that every dialect can say in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Phrase {
    Year,
    Month,
    Day,
    Hour,
    /// Days from the second to the first.
    DaysBetween,
    Now,
    Today,
    Left,
    Right,
    Length,
    IfNull,
    If,
    Greatest,
    Least,
    /// Where the first stands in the second.
    Position,
    Substring,
    Upper,
    Lower,
    Divide,
    Subtract,
    Multiply,
    Add,
    Concat,
    /// Nothing but its argument: `CALCULATE(x)`.
    Itself,
    /// Converted to that type, where CAST with its usual name is not the way.
    ToInteger,
    ToText,
    ToDate,
    ToTimestamp,
}

/// The functions of all dialects (and of models' imagination) that mean a phrase: name, number of arguments, phrase, and which
/// argument is the phrase's first, second and third. `0` arguments with an empty order fits any number.
#[rustfmt::skip]
const MEANINGS: &[(&str, usize, Phrase, &[usize])] = &[
    ("year", 1, Phrase::Year, &[0]),
    ("month", 1, Phrase::Month, &[0]),
    ("day", 1, Phrase::Day, &[0]),
    ("dayofmonth", 1, Phrase::Day, &[0]),
    ("hour", 1, Phrase::Hour, &[0]),
    ("datediff", 2, Phrase::DaysBetween, &[0, 1]),
    ("now", 0, Phrase::Now, &[]),
    ("getdate", 0, Phrase::Now, &[]),
    ("sysdate", 0, Phrase::Now, &[]),
    ("curdate", 0, Phrase::Today, &[]),
    ("today", 0, Phrase::Today, &[]),
    ("left", 2, Phrase::Left, &[0, 1]),
    ("right", 2, Phrase::Right, &[0, 1]),
    ("len", 1, Phrase::Length, &[0]),
    ("char_length", 1, Phrase::Length, &[0]),
    ("character_length", 1, Phrase::Length, &[0]),
    ("nvl", 2, Phrase::IfNull, &[0, 1]),
    ("isnull", 2, Phrase::IfNull, &[0, 1]),
    ("ifnull", 2, Phrase::IfNull, &[0, 1]),
    ("if", 3, Phrase::If, &[0, 1, 2]),
    ("iif", 3, Phrase::If, &[0, 1, 2]),
    ("greatest", 0, Phrase::Greatest, &[]),
    ("least", 0, Phrase::Least, &[]),
    ("locate", 2, Phrase::Position, &[0, 1]),
    ("charindex", 2, Phrase::Position, &[0, 1]),
    ("instr", 2, Phrase::Position, &[1, 0]),
    ("strpos", 2, Phrase::Position, &[1, 0]),
    ("mid", 3, Phrase::Substring, &[0, 1, 2]),
    ("substring", 3, Phrase::Substring, &[0, 1, 2]),
    ("substr", 3, Phrase::Substring, &[0, 1, 2]),
    ("ucase", 1, Phrase::Upper, &[0]),
    ("lcase", 1, Phrase::Lower, &[0]),
    ("divide", 2, Phrase::Divide, &[0, 1]),
    ("subtract", 2, Phrase::Subtract, &[0, 1]),
    ("minus", 2, Phrase::Subtract, &[0, 1]),
    ("multiply", 2, Phrase::Multiply, &[0, 1]),
    ("add", 2, Phrase::Add, &[0, 1]),
    ("concat", 0, Phrase::Concat, &[]),
    ("calculate", 1, Phrase::Itself, &[0]),
    ("compute", 1, Phrase::Itself, &[0]),
];

/// What every dialect understands, for databases that lack a function of their own dialect.
#[rustfmt::skip]
pub(crate) const STANDARD: &[(Phrase, &str)] = &[
    (Phrase::If, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    (Phrase::IfNull, "COALESCE({0}, {1})"),
    (Phrase::Concat, "({|})"),
    (Phrase::Itself, "({0})"),
    (Phrase::Length, "LENGTH({0})"),
    (Phrase::Substring, "SUBSTR({0}, {1}, {2})"),
];

/// What a call means, and its arguments in the phrase's order.
pub(crate) fn meaning<'t>(name: &str, arguments: &[&'t str]) -> Option<(Phrase, Vec<&'t str>)> {
    let (_, _, phrase, order) =
        MEANINGS.iter().find(|(n, count, _, order)| *n == name && (order.is_empty() || *count == arguments.len()))?;
    let ordered = if order.is_empty() {
        arguments.to_vec()
    } else {
        order.iter().filter_map(|&i| arguments.get(i).copied()).collect()
    };
    Some((*phrase, ordered))
}

/// Fills a template: `{0}` is the first argument, `{*}` all of them with commas, `{|}` all of them with `||`.
pub(crate) fn fill(template: &str, arguments: &[&str]) -> String {
    let mut text = template.replace("{*}", &arguments.join(", ")).replace("{|}", &arguments.join(" || "));
    for (i, argument) in arguments.iter().enumerate() {
        text = text.replace(&format!("{{{i}}}"), argument);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_said_anew() {
        let (phrase, arguments) = meaning("instr", &["title", "'x'"]).unwrap();
        assert_eq!(phrase, Phrase::Position);
        assert_eq!(fill("POSITION({0} IN {1})", &arguments), "POSITION('x' IN title)");
        assert_eq!(fill("({|})", &["a", "b", "c"]), "(a || b || c)");
        assert!(meaning("datediff", &["DAY", "a", "b"]).is_none());
    }
}
