//! Advice for errors that only the database found: the review of the same query says nothing about them.

/// One sentence for the rule that a database's error was classified as. The error message itself is quoted beside it.
const ADVICE: &[(&str, &str)] = &[
    ("alias-reference", "An alias of SELECT cannot be used there: repeat the expression instead."),
    ("ambiguous-column", "Write the table or its alias before the column."),
    ("argument-types", "Cast the argument to the type that the function takes."),
    ("compared-types", "Compare values of the same type; CAST one side where they differ."),
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

/// The advice for one rule, if there is any.
pub(super) fn of(code: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(known, _)| *known == code).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_advice_belongs_to_a_rule_and_is_short() {
        for (code, text) in ADVICE {
            assert!(querymend_sql::Rule::named(code).is_some(), "{code}");
            assert!(text.split_whitespace().count() <= 20, "{code}: {text}");
        }
    }
}
