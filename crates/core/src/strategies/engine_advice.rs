//! Advice for errors that only the database detects, and the review of the query does not.

/// One sentence per rule that a database error is classified as. The prompt also quotes the error
/// message.
const ADVICE: &[(&str, &str)] = &[
    ("alias-reference", "An alias of SELECT cannot be used there: repeat the expression instead."),
    ("ambiguous-column", "Write the table or its alias before the column."),
    ("argument-types", "Cast the argument to the type that the function takes."),
    ("type-mismatch", "Compare values of the same type; CAST one side where they differ."),
    ("date-format", "Write dates as 'YYYY-MM-DD' and times as 'YYYY-MM-DD HH:MM:SS'."),
    ("division-by-zero", "Divide by NULLIF(divisor, 0)."),
    ("invalid-cast", "Cast only text that has the form of the type; filter out the other rows first."),
    ("missing-group-by", "List every column of SELECT that is not inside an aggregate in GROUP BY."),
    ("set-operation-arity", "Select the same number of columns on both sides of the set operation."),
    ("subquery-many-rows", "Compare with IN (subquery), or make the subquery give one row."),
    ("unknown-alias", "Use only the tables and aliases of this FROM clause."),
    ("unknown-column", "Use only columns of the tables shown, quoted and cased as they are written there."),
    ("unknown-function", "Use a function that this database has."),
    ("unknown-table", "Use only the tables shown, quoted and cased as they are written there."),
    ("wrong-argument-count", "Call the function with the number of arguments that it takes."),
];

/// Returns the advice for a rule, if there is any.
pub(super) fn advice_for(code: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(known, _)| *known == code).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_engine_advice_short_and_tied_to_a_rule() {
        for (code, text) in ADVICE {
            assert!(querymend_sql::Rule::from_code(code).is_some(), "{code}");
            assert!(text.split_whitespace().count() <= 20, "{code}: {text}");
        }
    }
}
