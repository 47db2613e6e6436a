#![doc = include_str!("unknown_table.md")]

use crate::dialect::DoubleQuotes;
use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::fixes;
use crate::fixes::columns::cte_columns;
use crate::fixes::columns::self_reference::foreign_key_target;
use crate::fixes::junction_tables::{missing_junction, missing_junction_subquery};
use crate::fixes::score::WEIGHTS;
use crate::resolve::{ColumnBinding, SourceId, TableBinding, TableReference};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::did_you_mean;
use crate::rules::safety::protected_table;
use crate::schema::{Schema, Table};
use crate::text::semantic_similarity::{MIN_SYNONYM_SIMILARITY, name_similarity};
use crate::text::similarity::{
    best_match, has_extra_words, identifier_similarity, identifier_words, is_similar, is_typo,
};

/// The `unknown-table` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unknown-table",
    group: RuleGroup::Names,
    error_type: ErrorType::TableNotFound,
    repair_order: 3,
    // A missing junction table is left out, or replaced by another with its own keys; `FROM dual`
    // reads nothing.
    rewrites: Some(RewriteScope {
        clauses: &["JOIN", "ON", "FROM", "SELECT", "WHERE"],
        tokens: &["a name", ".", "=", "LEFT", "INNER", "IN", "(", ")"],
        moves: false,
    }),
    page: include_str!("unknown_table.md"),
    check,
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(schema) = ctx.context.schema else { return };
    for table in ctx.resolution.tables.iter().filter(|t| matches!(t.binding, TableBinding::Unknown)) {
        let name = table.name.0.last().and_then(|p| p.as_ident()).map_or("", |i| i.value.as_str());
        let candidates =
            schema.tables().iter().map(|t| t.name.as_str()).chain(ctx.resolution.ctes.iter().map(|c| c.value.as_str()));
        let near = best_match(name, candidates);
        // The table exists, but not with this qualifier.
        let elsewhere = near.filter(|n| *n == name && table.name.0.len() > 1).and_then(|n| schema.table(n));
        let written = match elsewhere {
            Some(table) => Some(table.full_name()),
            None => near.map(|n| ctx.context.dialect.quote_identifier(n)),
        };
        // Only the case differs, which matters if quotes preserve it.
        let other_case = near.is_some_and(|n| n.eq_ignore_ascii_case(name));
        let hint = match &written {
            Some(written) if other_case => format!(" (it is written `{written}`)"),
            _ => did_you_mean(near),
        };
        let advice = match (&written, schema.tables().len()) {
            (Some(written), _) if elsewhere.is_some() => format!("There is no table {}: write {written}.", table.name),
            (Some(written), _) if other_case => {
                format!("Names in quotes keep their case and others are lower case: the table is written {written}.")
            }
            (Some(near), _) => format!("There is no table {name}; the nearest is {near}."),
            (None, 0..=30) => {
                let all: Vec<&str> = schema.tables().iter().map(|t| t.name.as_str()).collect();
                format!("There is no table {name}. Tables: {}.", all.join(", "))
            }
            (None, _) => format!("There is no table {name}; use only tables of the schema."),
        };
        let mut finding = Finding::new(
            "unknown-table",
            Severity::Error,
            ctx.query.span(table.span),
            name,
            format!(
                "there is no table `{}`{hint}",
                if elsewhere.is_some() { unquoted_full_name(table) } else { name.to_string() }
            ),
        )
        .with_suggestion(written)
        .with_advice(advice);
        let parts: Vec<&str> = table.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str()).collect();
        if !protected_table::is_denied_by_name(ctx.context, &parts) {
            finding.fixes = table_fixes(table, name, ctx, schema);
        }
        out.push(finding);
    }
}

/// Returns the qualified name of a table, without quotes.
fn unquoted_full_name(table: &TableReference<'_>) -> String {
    let parts = table.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str());
    parts.collect::<Vec<_>>().join(".")
}

/// Returns fixes with tables of a similar name, then with tables that have every referenced column.
fn table_fixes(table: &TableReference<'_>, name: &str, ctx: &RuleContext<'_>, schema: &Schema) -> Vec<Fix> {
    let resolution = ctx.resolution;
    let source = resolution.sources.iter().position(|s| s.span == table.span);
    if let Some(fix) = source.and_then(|s| remove_dual(s, name, ctx)) {
        return vec![fix];
    }
    let known =
        schema.tables().iter().any(|t| identifier_similarity(name, &t.name) >= WEIGHTS.min_close_table_similarity);
    if let Some(with) = cte_columns::similar_cte(name, ctx).filter(|_| !known) {
        let why = format!("the CTE `{with}` has a name similar to `{name}`");
        let text = ctx.context.dialect.quote_identifier(with);
        return vec![fixes::replace(ctx.query.span(table.span), text, Applicability::Likely, why)];
    }
    let mut between = Vec::new();
    if let Some(source) = source.filter(|_| fixes::within_fix_budget(ctx, &[])) {
        between.extend(table_of_qualifiers(source, table, ctx, schema));
        between.extend(missing_junction::junction_fixes(source, ctx, schema));
        between.extend(missing_junction_subquery::nested_junction_fixes(source, ctx, schema));
    }
    let called = source.and_then(|s| resolution.sources[s].name).map_or(name, |n| n.value.as_str());
    let quotes_are_names = ctx.context.dialect.double_quotes == DoubleQuotes::Identifier;
    let mentioned: Vec<&str> = resolution
        .references
        .iter()
        .filter(|r| match r.qualifier {
            Some(q) => q.value.eq_ignore_ascii_case(called),
            None => {
                r.binding == ColumnBinding::UnknownSource
                    && source.is_some_and(|s| resolution.sources[s].block == r.block)
            }
        })
        // Double-quoted text may be a literal.
        .filter(|r| !r.is_wildcard && (r.name.quote_style != Some('"') || quotes_are_names))
        .map(|r| r.name.value.as_str())
        .collect();
    let block = source.map(|s| resolution.sources[s].block);
    let pointed = block.and_then(|block| foreign_key_target(called, block, ctx)).map(|pointed| pointed.table);
    let mut candidates: Vec<TableCandidate<'_>> = schema
        .tables()
        .iter()
        .filter_map(|t| {
            // Models write `id` for a key that they do not know.
            let key = |a: &str| {
                let [key] = t.primary_key.as_slice() else { return false };
                a.eq_ignore_ascii_case("id") && !mentioned.iter().any(|a| a.eq_ignore_ascii_case(key))
            };
            let has = |a: &str| t.columns.iter().any(|c| is_similar(a, &c.name, WEIGHTS.min_same_name_similarity));
            let missing = mentioned.iter().filter(|a| !has(a) && !key(a)).count();
            // A column that is misspelled as well is not evidence against a table.
            let near = |a: &str| {
                t.columns
                    .iter()
                    .any(|c| is_similar(a, &c.name, WEIGHTS.min_table_column_similarity) || is_typo(a, &c.name))
            };
            let lacking = mentioned.iter().filter(|a| !near(a) && !key(a)).count();
            let is_pointed_at = pointed.is_some_and(|table| std::ptr::eq(table, t));
            let evidence = TableEvidence::of(name, t, is_pointed_at, ctx);
            // The question and synonyms are evidence only if the table has the referenced columns.
            let is_weak = |e: &TableEvidence| matches!(e, TableEvidence::Question | TableEvidence::Synonym);
            let evidence = evidence.filter(|e| !is_weak(e) || (!mentioned.is_empty() && lacking == 0));
            let evidence = evidence.or((!mentioned.is_empty() && missing == 0).then_some(TableEvidence::Columns))?;
            let asked = usize::from(evidence.penalty() > 0 && fixes::question_mentions(ctx, &t.name));
            // A foreign key of the query that is compared with it identifies the table.
            let rival = usize::from(pointed.is_some() && !is_pointed_at);
            Some(TableCandidate {
                table: t,
                evidence,
                missing_columns: missing,
                dissimilar_columns: lacking,
                penalty: evidence.penalty() + WEIGHTS.table_missing_column * missing
                    - WEIGHTS.table_mention_bonus * asked
                    + WEIGHTS.table_other_target * rival,
            })
        })
        .collect();
    candidates.sort_by_key(|candidate| candidate.penalty);
    let clear = match candidates.as_slice() {
        [] => false,
        [only] => only.penalty <= WEIGHTS.max_clear_table_penalty,
        [first, second, ..] => first.penalty == 0 && second.penalty > WEIGHTS.max_clear_table_penalty,
    };
    // A junction table is identified by the tables that it joins, unless its very name identifies
    // it.
    let known_by_name =
        candidates.first().is_some_and(|candidate| candidate.penalty <= WEIGHTS.max_known_table_penalty);
    let clear = clear && (known_by_name || between.is_empty());
    let dialect = ctx.context.dialect;
    let penalties: Vec<usize> = candidates.iter().map(|candidate| candidate.penalty).collect();
    let table_fixes = candidates.into_iter().take(4).enumerate().map(|(n, candidate)| {
        let right = dialect.quote_identifier(&candidate.table.name);
        let mut edits = vec![Edit { span: ctx.query.span(table.span), text: right.clone() }];
        // Without an alias, the columns are qualified with the wrong name as well.
        if called.eq_ignore_ascii_case(name) {
            let qualifiers =
                resolution.references.iter().filter_map(|r| r.qualifier).filter(|q| q.value.eq_ignore_ascii_case(name));
            edits.extend(qualifiers.map(|q| Edit { span: ctx.query.span(q.span), text: right.clone() }));
        }
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        let applicability = match candidate.evidence {
            TableEvidence::Columns => Applicability::Suggested,
            // A merely similar name of a table that lacks referenced columns is a guess.
            _ if candidate.dissimilar_columns > 0
                && candidate.penalty > WEIGHTS.table_missing_column * candidate.missing_columns =>
            {
                Applicability::Suggested
            }
            TableEvidence::SameName | TableEvidence::Spelling(_) if clear && n == 0 => Applicability::Safe,
            _ => Applicability::Likely,
        };
        let tied = n > 0 && penalties[n] == penalties[n - 1];
        Fix {
            edits,
            applicability,
            why: candidate.evidence.reason(name, &candidate.table.name),
            is_tied_with_previous: tied,
        }
    });
    if known_by_name {
        table_fixes.chain(between).collect()
    } else {
        between.iter().cloned().chain(table_fixes).collect()
    }
}

/// A candidate for the table that was meant.
struct TableCandidate<'s> {
    table: &'s Table,
    evidence: TableEvidence,
    /// Number of columns referenced on the unknown table that it lacks.
    missing_columns: usize,
    /// Number of these for which it has no similar name either.
    dissimilar_columns: usize,
    /// Evidence against it; lower is better.
    penalty: usize,
}

/// Evidence that a table was meant by an unknown name.
#[derive(Clone, Copy, PartialEq)]
enum TableEvidence {
    /// Equal name, ignoring case, underscores, plural and qualifier.
    SameName,
    /// Similar name, with its penalty.
    Spelling(usize),
    /// Foreign key of the query that refers to the table.
    ForeignKey,
    /// Mention of the table in the question.
    Question,
    /// Name that is a synonym.
    Synonym,
    /// Columns that the query refers to. Any table may have them, so this is a suggestion rather
    /// than evidence.
    Columns,
}

impl TableEvidence {
    fn of(name: &str, table: &Table, is_pointed_at: bool, ctx: &RuleContext<'_>) -> Option<Self> {
        // `deleted_orders` are not the orders: a word that the table's name lacks may be essential.
        let is_spelled_alike = !has_extra_words(name, &table.name);
        match identifier_similarity(name, &table.name) {
            l if l >= WEIGHTS.min_same_name_similarity => Some(Self::SameName),
            l if l >= WEIGHTS.min_close_table_similarity && is_spelled_alike => {
                Some(Self::Spelling(WEIGHTS.close_table))
            }
            l if l >= WEIGHTS.min_similar_table_similarity && is_spelled_alike => {
                Some(Self::Spelling(WEIGHTS.similar_table))
            }
            _ if is_pointed_at => Some(Self::ForeignKey),
            // A query that uses a table elsewhere has its name right, and would not misspell it
            // here.
            _ if fixes::question_mentions(ctx, &table.name) && !is_used(table, ctx) => Some(Self::Question),
            _ if is_synonym(name, table, ctx) => Some(Self::Synonym),
            _ => None,
        }
    }

    fn penalty(self) -> usize {
        match self {
            Self::SameName => WEIGHTS.same_table_name,
            Self::ForeignKey => WEIGHTS.foreign_key_target,
            Self::Spelling(doubt) => doubt,
            Self::Question => WEIGHTS.mentioned_table,
            Self::Synonym => WEIGHTS.synonym_table,
            Self::Columns => WEIGHTS.table_with_columns,
        }
    }

    fn reason(self, name: &str, table: &str) -> String {
        match self {
            Self::SameName => format!("`{table}` is `{name}` in another spelling"),
            Self::Spelling(_) => format!("`{table}` is spelled like `{name}`"),
            Self::ForeignKey => format!("a key of the query refers to `{table}`"),
            Self::Question => format!("the question names `{table}`"),
            Self::Synonym => format!("`{table}` is a synonym of `{name}`"),
            Self::Columns => {
                format!("`{table}` has the columns that are used of `{name}`, which does not prove that it is meant")
            }
        }
    }
}

/// Returns whether the table is the only one whose name is a synonym of the unknown one.
fn is_synonym(name: &str, table: &Table, ctx: &RuleContext<'_>) -> bool {
    let Some(schema) = ctx.context.schema else { return false };
    let Some(similarity) = schema.similarity().filter(|_| identifier_words(name).len() == 1) else { return false };
    let is_close = |table: &Table| {
        name_similarity(similarity, &identifier_words(name).join(" "), &identifier_words(&table.name).join(" "))
            >= MIN_SYNONYM_SIMILARITY
    };
    let mut close = schema.tables().iter().filter(|table| is_close(table));
    close.next().is_some_and(|first| std::ptr::eq(first, table)) && close.next().is_none()
}

fn is_used(table: &Table, ctx: &RuleContext<'_>) -> bool {
    ctx.resolution.sources.iter().any(|source| source.table().is_some_and(|used| std::ptr::eq(used, table)))
}

/// Returns a fix if no column refers to the unknown table and all columns are those of a table that
/// is not in FROM, which was then meant.
fn table_of_qualifiers(
    unknown: SourceId,
    table: &TableReference<'_>,
    ctx: &RuleContext<'_>,
    schema: &Schema,
) -> Option<Fix> {
    let resolution = ctx.resolution;
    let block = resolution.sources[unknown].block;
    let mut meant: Option<&Table> = None;
    for r in resolution.references.iter().filter(|r| r.block == block && r.binding == ColumnBinding::UnknownQualifier) {
        let named = schema.table(&r.qualifier?.value).filter(|t| r.is_wildcard || t.column(&r.name.value).is_some())?;
        if meant.is_some_and(|m| !std::ptr::eq(m, named)) {
            return None;
        }
        meant = Some(named);
    }
    let own = |r: &&crate::resolve::ColumnReference<'_>| {
        let its = r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(resolution.sources[unknown].display_name()));
        r.block == block && (its || r.qualifier.is_none())
    };
    let meant = meant
        .filter(|_| resolution.blocks[block].sources.len() == 1 && !resolution.references.iter().any(|r| own(&r)))?;
    let place = ctx.query.span(table.span);
    let name = resolution.sources[unknown].name.map_or(place, |n| place.join(ctx.query.span(n.span)));
    let why = format!("every selected column belongs to `{}`, which is not in FROM", meant.name);
    Some(fixes::replace(name, ctx.context.dialect.quote_identifier(&meant.name), Applicability::Likely, why))
}

/// Removes `FROM dual`, which other databases require where there is nothing to read.
fn remove_dual(source: SourceId, name: &str, ctx: &RuleContext<'_>) -> Option<Fix> {
    let source = &ctx.resolution.sources[source];
    let alone = ctx.resolution.blocks[source.block].sources.len() == 1;
    let asked = ctx.resolution.references.iter().any(|r| r.block == source.block);
    if !name.eq_ignore_ascii_case("dual") || !alone || asked {
        return None;
    }
    let place = ctx.query.span(source.span);
    let end = source.name.map_or(place, |n| place.join(ctx.query.span(n.span)));
    let span = fixes::from_keyword(ctx, source.block)?.join(end);
    Some(fixes::replace(span, "", Applicability::Safe, "a query that reads no table needs no FROM"))
}
