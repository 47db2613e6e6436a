#![doc = include_str!("ambiguous_column.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
use crate::rules::names::joined_twice;
use crate::rules::names::kinship::evidence;
use crate::rules::{Rule, Subject};
use crate::scope::{JoinKind, Meaning, Reference, SourceId};

/// See the page.
pub static RULE: Rule =
    Rule { code: "ambiguous-column", group: "names", page: include_str!("ambiguous_column.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let Meaning::Ambiguous(sources) = &reference.meaning else { continue };
        let name = reference.name.value.as_str();
        let mut owners: Vec<&str> = sources.iter().map(|&s| subject.facts.sources[s].called()).collect();
        owners.dedup();
        let quoted = |n: &str| subject.context.dialect.quoted(n);
        let (message, advice) = match (owners.as_slice(), sources.as_slice()) {
            ([only], [first, second, ..]) if first == second => (
                format!("`{only}` has two columns called `{name}`"),
                format!("{only} selects two columns called {name}: give one of them another name with AS there."),
            ),
            ([only], _) => (
                format!("two tables are called `{only}` here, and both have `{name}`"),
                format!("{only} is in FROM twice: give each its own alias and write alias.{name}."),
            ),
            (several, _) => {
                let list: Vec<String> = several.iter().map(|o| format!("`{o}`")).collect();
                let choices: Vec<String> = several.iter().map(|o| format!("{}.{}", quoted(o), quoted(name))).collect();
                (
                    format!("`{name}` could be a column of {}", list.join(" and ")),
                    format!("{name} is ambiguous: write {}.", choices.join(" or ")),
                )
            }
        };
        let mut finding =
            Finding::new("ambiguous-column", Severity::Error, subject.query.span(reference.place), name, message)
                .advise(advice);
        if owners.len() > 1 {
            finding.fixes = fixes(reference, sources, subject);
        } else if mend::worth_mending(subject, out) {
            finding.fixes = joined_twice::fixes(sources, subject);
        }
        out.push(finding);
    }
}

/// Each owner is a way to mend it. Where the join makes the owners equal, any of them is right.
fn fixes(reference: &Reference<'_>, sources: &[SourceId], subject: &Subject<'_>) -> Vec<Fix> {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let column =
        |s: SourceId| facts.sources[s].column_names().iter().position(|c| c.eq_ignore_ascii_case(name)).map(|i| (s, i));
    let equal = |a: SourceId, b: SourceId| {
        let (a, b) = (column(a), column(b));
        facts.operations.iter().any(|o| {
            *o.operator == BinaryOperator::Eq
                && o.required
                && ((o.left.column == a && o.right.column == b) || (o.left.column == b && o.right.column == a))
        })
    };
    let partner = mend::partner(subject, reference);
    let all_equal = sources.windows(2).all(|w| equal(w[0], w[1]));
    // A table that the question names, or that the query asks for more, is the likelier owner.
    let mut ranked: Vec<Owner> = sources
        .iter()
        .enumerate()
        .map(|(n, &s)| {
            let asked = usize::from(facts.sources[s].table().is_some_and(|t| mend::asked_for(subject, &t.name)));
            let uses = facts.references.iter().filter(|r| {
                r.block == reference.block
                    && r.clause == reference.clause
                    && matches!(r.meaning, Meaning::Column(x, _) if x == s)
            });
            let misfit = mend::misfit(subject, partner, s, name);
            let doubt = misfit as isize - (4 * asked + uses.count().min(3) * 3) as isize;
            Owner { doubt: doubt - evidence(reference, s, name, subject), position: n as isize, source: s }
        })
        .collect();
    if all_equal {
        // Equal, except that an outer join may leave the joined side empty.
        let is_outer = |s: SourceId| isize::from(facts.sources[s].join == JoinKind::Outer);
        ranked = sources.iter().map(|&s| Owner { doubt: is_outer(s), position: 0, source: s }).collect();
    }
    ranked.sort_by_key(Owner::rank);
    ranked.dedup_by_key(|owner| owner.source);
    // Of two uses of one table only their places differ, which says nothing.
    let table = |s: SourceId| facts.sources[s].table();
    let tied = match ranked.as_slice() {
        [best, next, ..] => {
            let same = table(best.source).zip(table(next.source)).is_some_and(|(a, b)| std::ptr::eq(a, b));
            same && next.rank() - best.rank() < 2
        }
        _ => false,
    };
    let likely = if tied { Applicability::Suggested } else { Applicability::Likely };
    let span = subject.query.span(reference.place);
    let best = ranked.first().map(|owner| owner.doubt);
    let ways = ranked.into_iter().enumerate().filter_map(|(n, Owner { doubt, source, .. })| {
        let names = facts.sources[source].column_names();
        let written = names.iter().find(|c| c.eq_ignore_ascii_case(name))?;
        let text = mend::qualified(subject, source, written)?;
        let called = facts.sources[source].called();
        if all_equal {
            let why = format!("the join makes `{name}` equal in all of them, so `{called}` is as good as any");
            return Some(mend::replace(span, text, Applicability::Safe, why));
        }
        let why = format!("`{called}` is the likeliest owner of `{name}`");
        Some(Fix { tied: n > 0 && best == Some(doubt), ..mend::replace(span, text, likely, why) })
    });
    ways.collect()
}

/// A source that has the ambiguous column.
struct Owner {
    /// What speaks against it; lower is better.
    doubt: isize,
    /// Where it is in FROM: decides between owners of equal doubt, and is no evidence.
    position: isize,
    source: SourceId,
}

impl Owner {
    fn rank(&self) -> isize {
        self.doubt + self.position
    }
}
