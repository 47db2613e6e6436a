#![doc = include_str!("nulls_first.md")]

use sqlparser::ast::{LimitClause, OrderByExpr, OrderByKind, OrderBySort, Spanned, Statement};

use crate::dialect::NullOrder;
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::mend;
use crate::rules::{Rule, Subject};
use crate::scope::{Clause, Meaning};

/// See the page.
pub static RULE: Rule = Rule { code: "nulls-first", group: "shape", page: include_str!("nulls_first.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if let Some(finding) = find(subject) {
        out.push(finding);
    }
}

fn find(subject: &Subject<'_>) -> Option<Finding> {
    let order = first_sort_key(subject)?;
    let is_ascending = match &order.options.sort {
        None | Some(OrderBySort::Asc) => true,
        Some(OrderBySort::Desc) => false,
        Some(OrderBySort::Using(_)) => return None,
    };
    let puts_nulls_first = match subject.context.dialect.null_order {
        NullOrder::Smallest => is_ascending,
        NullOrder::Largest => !is_ascending,
        NullOrder::Last => false,
    };
    if !puts_nulls_first || order.options.nulls_first.is_some() {
        return None;
    }
    let facts = subject.facts;
    let place = order.expr.span();
    let reference = facts.references.iter().find(|r| r.clause == Clause::OrderBy && r.place == place)?;
    let Meaning::Column(source, index) = reference.meaning else { return None };
    let (table, column) = facts.sources[source].origin(index)?;
    let block = &facts.blocks[reference.block];
    let is_plain = !block.grouped && !block.aggregates && !block.distinct && facts.blocks.len() == 1;
    if !is_plain || !column.nullable || table.is_unique(&[column.name.as_str()]) {
        return None;
    }
    let span = subject.query.span(place);
    let message = format!("`{}` can be NULL, and {} sorts NULL first", column.name, subject.context.dialect.name);
    let why = format!("rows without `{}` would take the place of those that LIMIT is to show", column.name);
    let nulls_last = format!("{} IS NULL, ", subject.query.text(span));
    let fix = mend::replace(Span::new(span.start, span.start), nulls_last, Applicability::Likely, why);
    let finding = Finding::new(RULE.code, Severity::Info, span, &column.name, message)
        .advise(format!("Sort by {0} IS NULL first, or add WHERE {0} IS NOT NULL.", column.name));
    Some(finding.mend(fix))
}

/// The first sort key of a statement that has a limit.
fn first_sort_key<'s>(subject: &'s Subject<'_>) -> Option<&'s OrderByExpr> {
    let [Statement::Query(query)] = subject.query.statements.as_slice() else { return None };
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else { return None };
    let is_limited = matches!(query.limit_clause, Some(LimitClause::LimitOffset { limit: Some(_), offset: None, .. }));
    keys.first().filter(|_| is_limited)
}
