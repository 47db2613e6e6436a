//! Weights that rank the candidate fixes of a finding, and costs of the repair search.
//!
//! Every candidate fix has a penalty. The fix with the lowest penalty ranks first; equal penalties
//! are a tie. The rank, the applicability of the fix and the remaining errors add up to the cost of
//! a node in the repair search, which expands the cheapest node first.
//!
//! # Measuring a change
//!
//! No script searches for better weights. Change one, and compare the repairs of both builds:
//!
//! ```sh
//! cargo build --release && python3 scripts/repair_table.py before.jsonl
//! # change a weight
//! cargo build --release && python3 scripts/repair_table.py after.jsonl
//! git diff docs/measurements/repair-by-rule.md
//! python3 scripts/misleading.py --show
//! ```
//!
//! `repair_table.py` needs the evaluation data (`docs/measurements/README.md`). It writes
//! `repair-by-rule.md`, with the correct and wrong repairs of each set and rule, and every wrong
//! repair to the given file. A query only in `after.jsonl` became wrong; one only in
//! `before.jsonl` became correct or is given up. `misleading.py` needs no other data: it counts the
//! repairs of the adversarial queries in `datasets/misleading`. The integration tests check the
//! first fix of each example on the rule pages.

/// Weights of the evidence for and against candidate fixes.
///
/// - A `min_…_similarity` is the lowest similarity of two identifiers that counts, from 0 to 1.
/// - A `max_…` or other `min_…` field is a limit.
/// - A `…_bonus` is subtracted from the penalty, and ranks the candidate higher.
/// - Every other field of type `usize` is added to the penalty, and ranks the candidate lower.
/// - Every other field of type `isize` is evidence for or against an owner of a column.
pub(crate) struct FixRankingWeights {
    // Similarity of names.
    /// Names are the same, except for case, underscores and plural.
    pub min_same_name_similarity: f64,
    /// A word of the question, or of the query, is a word of the name.
    pub min_mention_similarity: f64,
    /// A column is a candidate for an unknown one.
    pub min_candidate_similarity: f64,
    /// A difference of one letter is a typo.
    pub min_typo_similarity: f64,
    /// The spelling of a column is evidence by itself.
    pub min_similar_column_similarity: f64,
    /// The fix is safe if no other evidence contradicts it.
    pub min_safe_column_similarity: f64,
    /// The spelling of a column is strong evidence.
    pub min_close_column_similarity: f64,
    /// Two names are similar as a whole, so that different words do not contradict them.
    pub min_whole_name_similarity: f64,
    /// Two words of different names may be the same word.
    pub min_name_word_similarity: f64,
    /// A word of an alias is a word of the key that one use of a repeated table is joined on.
    pub min_alias_word_similarity: f64,
    /// An unknown table is a misspelled CTE.
    pub min_cte_similarity: f64,
    /// The spelling of a table is evidence by itself.
    pub min_similar_table_similarity: f64,
    /// The spelling of a table is strong evidence, and outweighs a similar CTE.
    pub min_close_table_similarity: f64,
    /// A table has a misspelled column, so that the column is not evidence against the table.
    pub min_table_column_similarity: f64,

    // Comparison with another column, for all candidates that are columns.
    /// No foreign key connects the column with the one it is compared with, or it is compared with
    /// none.
    pub unlinked_comparison: usize,
    /// The column is compared with a column of its own source.
    pub same_source_comparison: usize,

    // A column of the same name in another source.
    /// Maximum penalty for the position of the source in FROM; each position counts 1.
    pub max_source_position: usize,
    /// The name differs in case, underscores or plural.
    pub other_spelling: usize,
    /// The source belongs to an outer query.
    pub outer_source: usize,
    /// The qualifier matches no source, and no foreign key suggests a correlated subquery.
    pub unknown_qualifier: usize,
    /// The qualifier is the name of a table that has an alias, and this column is an alternative to
    /// that table; subtracted from a penalty of at least `unknown_qualifier`.
    pub unknown_qualifier_bonus: usize,

    // A column of a similar name.
    /// The name differs by one letter, and no table has a column of that name.
    pub typo: usize,
    /// The name is the same, or `id` is written for the only primary key column.
    pub same_name: usize,
    /// The other words of the name are the table: `department_name` is the name of a department.
    pub owner_in_name: usize,
    /// A foreign key connects the column with the one it is compared with.
    pub linked_column: usize,
    /// The similarity is at least `min_close_column_similarity`.
    pub close_column: usize,
    /// The question mentions a column of `close_column`.
    pub close_column_mention_bonus: usize,
    /// The similarity is at least `min_similar_column_similarity`.
    pub similar_column: usize,
    /// The question mentions a column of `similar_column`.
    pub similar_column_mention_bonus: usize,
    /// The similarity is lower.
    pub distant_column: usize,
    /// Factor of the similarity of a `distant_column`; the product is rounded down and subtracted.
    pub distant_column_similarity_bonus: f64,
    /// The question mentions a column of `distant_column`.
    pub distant_column_mention_bonus: usize,
    /// The name has words that match nothing in the schema.
    pub unknown_owner: usize,
    /// Each name has words that the other lacks: `book_name` is not `book_id`.
    pub conflicting_words: usize,
    /// The other words of the name are another table, or a foreign key that references one.
    pub other_owner: usize,

    // Other columns.
    /// A foreign key column is written as the column that it references.
    pub foreign_key_column: usize,
    /// The foreign key is inferred rather than declared.
    pub inferred_key: usize,
    /// A self-join lacks the foreign key that references another row of the table.
    pub self_reference: usize,
    /// The name is a value of the column that it is compared with, and lacks quotes.
    pub quoted_value: usize,
    /// Exactly one visible column contains the literal that the name is compared with.
    pub column_with_value: usize,
    /// A CTE or derived table does not select a column that one of its tables has.
    pub missing_projection: usize,
    /// The column contains dates, and the name is a general one such as `date`.
    ///
    /// Lower than the penalty of a name that shares half of its letters.
    pub date_column: usize,
    /// The question mentions the date column.
    pub date_column_mention_bonus: usize,

    // A source that is added to FROM.
    /// A CTE is used and joined in a condition, but is not in FROM.
    pub missing_cte: usize,
    /// A self-referencing foreign key is compared with an undefined alias.
    pub missing_self_join: usize,
    /// A query without FROM reads a table that has the column.
    pub missing_from: usize,
    /// The added table lacks another column of the query; once per column.
    pub missing_from_column: usize,
    /// The question mentions the added table.
    pub missing_from_mention_bonus: usize,

    // A table that has the missing column and is joined along foreign keys. Its bonuses can only
    // cancel the penalties of the path, `joined_table` and `joined_missing_column`.
    /// A table is joined.
    pub joined_table: usize,
    /// The table lacks another missing column of the query; once per column.
    pub joined_missing_column: usize,
    /// The question mentions the table.
    pub joined_mention_bonus: usize,
    /// The unknown qualifier is the name of the table.
    pub joined_qualifier_bonus: usize,
    /// A foreign key connects the table with another source; once per source after the first.
    pub joined_connection_bonus: usize,
    /// Maximum number of sources that count for `joined_connection_bonus`.
    pub max_joined_connections: usize,
    /// The question mentions column and table in one phrase: `names of all tracks`.
    pub joined_phrase_bonus: usize,
    /// The column is in an ON clause, which cannot refer to a table that is joined later.
    pub joined_after_on: usize,
    /// The column of the table has another name than the missing one.
    pub joined_other_name: usize,
    /// The column is the one that the table is joined on.
    pub joined_on_column: usize,
    /// A group of sources stays disconnected; once per group.
    pub joined_disconnected_group: usize,
    /// An outer query reads the table, so that the undefined alias is more likely defined there.
    pub joined_outer_table: usize,
    /// A foreign key that is compared with the undefined alias references another table.
    pub joined_other_target: usize,
    /// A semi-join replaces the join, which would multiply rows; added to the penalty of the join.
    pub semi_join: usize,
    /// The query aggregates over all rows, which a join that multiplies rows would change.
    pub semi_join_aggregate_bonus: usize,

    // A path of foreign keys between two tables.
    /// The path has a join; once per join.
    pub path_join: usize,
    /// A foreign key of the path is inferred rather than declared; once per key.
    pub path_inferred_key: usize,
    /// A join of the path may multiply rows; once per join.
    pub path_fan_out: usize,
    /// The question or the query mentions a word of a foreign key column that is not in the table
    /// names; once per column pair.
    pub path_mention_bonus: usize,
    /// The query groups by a foreign key column; once per column pair.
    pub path_group_by_bonus: usize,
    /// Part of the cost of every path, when paths of equal length are compared.
    ///
    /// Keeps paths with large bonuses apart, since a cost is not negative.
    pub path_base: usize,

    // A join condition that is replaced by foreign keys.
    /// The condition is replaced.
    pub join_condition: usize,
    /// The path has a join; once per join.
    pub join_condition_join: usize,
    /// Another path is equally good.
    pub join_condition_tie: usize,

    // Another table that replaces the only table of the query and has all of its columns.
    /// The query uses several columns of the table.
    pub switched_table: usize,
    /// The question mentions a table of `switched_table`.
    pub switched_table_mention_bonus: usize,
    /// The query uses only one column of the table.
    pub switched_table_one_column: usize,
    /// The question mentions a table of `switched_table_one_column`.
    pub switched_table_one_column_mention_bonus: usize,
    /// The query aggregates or groups, and so depends on the rows of its table.
    pub switched_table_aggregate: usize,
    /// The question mentions the replaced table.
    pub switched_table_lost_mention: usize,

    // Owner of a column whose name several sources have. Evidence for a source lowers its penalty,
    // evidence against it raises the penalty.
    /// For: a related clause of SELECT, GROUP BY and ORDER BY contains the column.
    pub clause_co_occurrence: isize,
    /// For: an adjacent operand of UNION, INTERSECT or EXCEPT selects the column at this position.
    pub set_operation_match: isize,
    /// Against: the query already selects the column.
    pub already_selected: isize,
    /// Against: a predicate fixes the selected column to one literal.
    pub fixed_to_literal: isize,
    /// For: in ON, the owner is the joined table and the other side of the comparison is not.
    pub joined_in_on: isize,
    /// Against: in ON, another equality already joins the column.
    pub already_joined: isize,
    /// Against: in ON, the owner is joined later.
    pub joined_later: isize,
    /// Against: the column would be compared with itself.
    pub self_comparison: isize,
    /// For: the question mentions the owner of an ambiguous column.
    pub owner_mention: isize,
    /// For: the same clause uses the owner of an ambiguous column; once per use.
    pub owner_use: isize,
    /// Maximum number of uses that count for `owner_use`.
    pub max_owner_uses: usize,
    /// Against: an outer join may leave an owner of equal columns empty.
    pub outer_joined_owner: isize,
    /// Minimum lead over another use of the same table; with less, the fix is only suggested.
    pub min_owner_lead: isize,

    // A table that replaces an unknown one.
    /// The name is the same.
    pub same_table_name: usize,
    /// The similarity is at least `min_close_table_similarity`.
    pub close_table: usize,
    /// The similarity is at least `min_similar_table_similarity`.
    pub similar_table: usize,
    /// A foreign key of the query references the table.
    pub foreign_key_target: usize,
    /// The question mentions the table.
    pub mentioned_table: usize,
    /// The name is a synonym of the table.
    pub synonym_table: usize,
    /// The table has all columns that the query uses, and there is no other evidence.
    pub table_with_columns: usize,
    /// The table lacks a column that the query uses; once per column.
    pub table_missing_column: usize,
    /// The question mentions a table whose name differs from the unknown one.
    pub table_mention_bonus: usize,
    /// A foreign key of the query references another table.
    pub table_other_target: usize,
    /// Maximum penalty of the only table of a safe fix; a second table must exceed it.
    pub max_clear_table_penalty: usize,
    /// Maximum penalty of a table that ranks before the junction tables of the schema.
    pub max_known_table_penalty: usize,
}

/// Weights of all rules.
pub(crate) const WEIGHTS: FixRankingWeights = FixRankingWeights {
    min_same_name_similarity: 0.98,
    min_mention_similarity: 0.95,
    min_candidate_similarity: 0.5,
    min_typo_similarity: 0.65,
    min_similar_column_similarity: 0.75,
    min_safe_column_similarity: 0.85,
    min_close_column_similarity: 0.88,
    min_whole_name_similarity: 0.8,
    min_name_word_similarity: 0.7,
    min_alias_word_similarity: 0.75,
    min_cte_similarity: 0.75,
    min_similar_table_similarity: 0.8,
    min_close_table_similarity: 0.85,
    min_table_column_similarity: 0.75,

    unlinked_comparison: 4,
    same_source_comparison: 12,

    max_source_position: 3,
    other_spelling: 1,
    outer_source: 3,
    unknown_qualifier: 9,
    unknown_qualifier_bonus: 8,

    typo: 1,
    same_name: 1,
    owner_in_name: 2,
    linked_column: 2,
    close_column: 6,
    close_column_mention_bonus: 1,
    similar_column: 11,
    similar_column_mention_bonus: 2,
    distant_column: 26,
    distant_column_similarity_bonus: 10.0,
    distant_column_mention_bonus: 4,
    unknown_owner: 1,
    conflicting_words: 6,
    other_owner: 12,

    foreign_key_column: 1,
    inferred_key: 2,
    self_reference: 2,
    quoted_value: 0,
    column_with_value: 7,
    missing_projection: 1,
    date_column: 15,
    date_column_mention_bonus: 3,

    missing_cte: 0,
    missing_self_join: 0,
    missing_from: 4,
    missing_from_column: 3,
    missing_from_mention_bonus: 2,

    joined_table: 2,
    joined_missing_column: 2,
    joined_mention_bonus: 2,
    joined_qualifier_bonus: 4,
    joined_connection_bonus: 3,
    max_joined_connections: 2,
    joined_phrase_bonus: 3,
    joined_after_on: 10,
    joined_other_name: 3,
    joined_on_column: 2,
    joined_disconnected_group: 4,
    joined_outer_table: 9,
    joined_other_target: 3,
    semi_join: 1,
    semi_join_aggregate_bonus: 2,

    path_join: 4,
    path_inferred_key: 4,
    path_fan_out: 2,
    path_mention_bonus: 3,
    path_group_by_bonus: 1,
    path_base: 10,

    join_condition: 1,
    join_condition_join: 2,
    join_condition_tie: 1,

    switched_table: 4,
    switched_table_mention_bonus: 1,
    switched_table_one_column: 6,
    switched_table_one_column_mention_bonus: 2,
    switched_table_aggregate: 8,
    switched_table_lost_mention: 5,

    clause_co_occurrence: 6,
    set_operation_match: 6,
    already_selected: 6,
    fixed_to_literal: 4,
    joined_in_on: 6,
    already_joined: 2,
    joined_later: 12,
    self_comparison: 12,
    owner_mention: 4,
    owner_use: 3,
    max_owner_uses: 3,
    outer_joined_owner: 1,
    min_owner_lead: 2,

    same_table_name: 0,
    close_table: 2,
    similar_table: 4,
    foreign_key_target: 1,
    mentioned_table: 5,
    synonym_table: 5,
    table_with_columns: 6,
    table_missing_column: 2,
    table_mention_bonus: 1,
    table_other_target: 9,
    max_clear_table_penalty: 2,
    max_known_table_penalty: 1,
};

// A bonus must not exceed the penalty that it is subtracted from.
const _: () = {
    let w = &WEIGHTS;
    assert!(w.unknown_qualifier >= w.unknown_qualifier_bonus);
    assert!(w.close_column >= w.close_column_mention_bonus);
    assert!(w.similar_column >= w.similar_column_mention_bonus);
    let distant_bonus = w.distant_column_similarity_bonus as usize + w.distant_column_mention_bonus;
    assert!(w.distant_column >= distant_bonus);
    assert!(w.date_column >= w.date_column_mention_bonus);
    assert!(w.missing_from >= w.missing_from_mention_bonus);
    assert!(w.switched_table >= w.switched_table_mention_bonus);
    assert!(w.switched_table_one_column >= w.switched_table_one_column_mention_bonus);
    assert!(w.foreign_key_target >= w.table_mention_bonus && w.close_table >= w.table_mention_bonus);
    assert!(w.similar_table >= w.table_mention_bonus && w.table_with_columns >= w.table_mention_bonus);
    assert!(w.mentioned_table >= w.table_mention_bonus && w.synonym_table >= w.table_mention_bonus);
};

/// Costs of a node in the repair search; the cheapest node is expanded first.
///
/// The rank of each applied fix is added, so that every position in the ranking costs 1.
pub(crate) struct SearchCosts {
    /// Applied fix that is safe.
    pub safe_fix: usize,
    /// Applied fix that is likely.
    pub likely_fix: usize,
    /// Applied fix that is only suggested.
    pub suggested_fix: usize,
    /// On a connected database, the column of a filter does not contain its value.
    ///
    /// Outweighs one or two positions in the ranking.
    pub absent_value: usize,
    /// The chosen owner of an ambiguous column makes a comparison implausible.
    pub implausible_owner: usize,
    /// Remaining error; once per error.
    pub remaining_error: usize,
    /// Number of errors that an unknown table may hide, in addition to its own.
    pub errors_hidden_by_table: usize,
    /// Number of errors that text which does not parse may hide.
    pub errors_hidden_by_syntax: usize,
    /// Number of errors that further statements may hide.
    pub errors_hidden_by_statements: usize,
    /// Minimum similarity of a replacement that keeps the name of an unknown column, from 0 to 1.
    ///
    /// A column of another name is a doubt about the meaning, and must not make a comparison
    /// implausible.
    pub min_kept_name_similarity: f64,
}

/// Costs of all searches.
pub(crate) const SEARCH_COSTS: SearchCosts = SearchCosts {
    safe_fix: 0,
    likely_fix: 1,
    suggested_fix: 8,
    absent_value: 3,
    implausible_owner: 3,
    remaining_error: 2,
    errors_hidden_by_table: 2,
    errors_hidden_by_syntax: 100,
    errors_hidden_by_statements: 50,
    min_kept_name_similarity: 0.95,
};
