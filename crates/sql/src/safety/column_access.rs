//! Collects every construct through which a statement may read or test a column: identifiers,
//! wildcards and constructs that the analysis cannot follow.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, Spanned, Statement, TableAlias, TableFactor, Value,
    ValueWithSpan, Visit, Visitor,
};
use sqlparser::tokenizer::Span as TokenSpan;

/// Wildcard that expands to columns.
#[derive(Debug)]
pub(crate) enum Wildcard {
    /// `SELECT *`, or a SELECT without a projection; the span is that of its SELECT keyword.
    All(TokenSpan),
    /// `t.*`, with its span.
    Qualified(TokenSpan),
    /// Any other wildcard, such as one among the arguments of a function.
    Other(TokenSpan),
}

/// Column access of a statement. Identifiers and quoted strings are only recorded if they are
/// requested.
#[derive(Default)]
pub(crate) struct ColumnAccess {
    /// Identifiers in any part of the query.
    pub(crate) identifiers: Vec<Ident>,
    /// Names of called functions.
    pub(crate) call_names: Vec<TokenSpan>,
    /// Aliases given to columns.
    pub(crate) aliases: Vec<TokenSpan>,
    /// Strings in double quotes, which a server setting may turn into identifiers.
    pub(crate) quoted_strings: Vec<(String, TokenSpan)>,
    pub(crate) wildcards: Vec<Wildcard>,
    /// Number of `*` tokens accounted for: multiplications, `COUNT(*)` and wildcards.
    pub(crate) accounted_asterisks: usize,
    /// Constructs that the analysis cannot follow.
    pub(crate) opaque_constructs: Vec<(&'static str, TokenSpan)>,
    /// Spans of the names of tables whose columns are renamed, or that are read through an index
    /// hint, a partition or a JSON path.
    pub(crate) indirect_reads: Vec<(&'static str, TokenSpan)>,
}

impl ColumnAccess {
    /// Walks a statement and records the names that `wanted` accepts.
    pub(crate) fn collect(statement: &Statement, wanted: &dyn Fn(&str) -> bool) -> Self {
        let mut walk = ColumnAccessVisitor { access: Self::default(), is_wanted: wanted };
        let _: ControlFlow<()> = statement.visit(&mut walk);
        walk.access
    }
}

struct ColumnAccessVisitor<'w> {
    access: ColumnAccess,
    is_wanted: &'w dyn Fn(&str) -> bool,
}

impl ColumnAccessVisitor<'_> {
    fn visit_call(&mut self, call: &Function) {
        let FunctionArguments::List(list) = &call.args else {
            if let FunctionArguments::Subquery(_) = &call.args {
                self.access.call_names.push(call.name.span());
            }
            return;
        };
        self.access.call_names.push(call.name.span());
        let counts =
            call.name.0.last().and_then(|p| p.as_ident()).is_some_and(|n| n.value.eq_ignore_ascii_case("count"));
        let only = counts && list.args.len() == 1 && list.duplicate_treatment.is_none() && list.clauses.is_empty();
        for argument in &list.args {
            let (FunctionArg::Unnamed(arg) | FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. }) =
                argument;
            match arg {
                // The number of rows reveals nothing about their contents.
                FunctionArgExpr::Wildcard if only => self.access.accounted_asterisks += 1,
                FunctionArgExpr::QualifiedWildcard(name) => self.record_wildcard(Wildcard::Qualified(name.span())),
                FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => {
                    self.record_wildcard(Wildcard::Other(call.name.span()));
                }
                FunctionArgExpr::Expr(_) => {}
            }
        }
    }

    fn record_wildcard(&mut self, star: Wildcard) {
        self.access.accounted_asterisks += 1;
        self.access.wildcards.push(star);
    }

    /// Records the column aliases of a relation that is visited separately.
    fn record_aliases(&mut self, alias: Option<&TableAlias>) {
        self.access.aliases.extend(alias.into_iter().flat_map(|a| &a.columns).map(|c| c.name.span));
    }
}

impl Visitor for ColumnAccessVisitor<'_> {
    type Break = ();

    fn pre_visit_ident(&mut self, ident: &Ident) -> ControlFlow<()> {
        if (self.is_wanted)(&ident.value) {
            self.access.identifiers.push(ident.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if let Value::DoubleQuotedString(text) = &value.value
            && (self.is_wanted)(text)
        {
            self.access.quoted_strings.push((text.clone(), value.span));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if !query.pipe_operators.is_empty() {
            self.access.opaque_constructs.push(("|>", query.span()));
        }
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.record_aliases(Some(&cte.alias));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let place = select.select_token.0.span;
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_) => self.record_wildcard(Wildcard::All(place)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    self.record_wildcard(Wildcard::Qualified(name.span()));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    self.record_wildcard(Wildcard::Other(expr.span()));
                }
                SelectItem::ExprWithAlias { alias, .. } => self.access.aliases.push(alias.span),
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAliases { .. } => {}
            }
        }
        if select.projection.is_empty() || select.flavor == SelectFlavor::FromFirstNoSelect {
            self.access.wildcards.push(Wildcard::All(place));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) => self.visit_call(call),
            Expr::BinaryOp { op: BinaryOperator::Multiply, .. } => self.access.accounted_asterisks += 1,
            // A full-text table is searched in all its columns, or in those that the search string
            // names.
            Expr::BinaryOp { op: BinaryOperator::Match, .. } => {
                self.access.opaque_constructs.push(("MATCH", expr.span()))
            }
            Expr::QualifiedWildcard(name, _) => self.record_wildcard(Wildcard::Qualified(name.span())),
            Expr::Wildcard(_) => self.record_wildcard(Wildcard::Other(expr.span())),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        use TableFactor as F;
        match factor {
            F::Table { name, alias, args: None, partitions, index_hints, json_path, with_hints, .. } => {
                let renames = alias.as_ref().is_some_and(|a| !a.columns.is_empty());
                let hinted = !index_hints.is_empty() || !with_hints.is_empty();
                let why = if renames {
                    Some("renames the columns of")
                } else if hinted {
                    Some("chooses an index of")
                } else if !partitions.is_empty() {
                    Some("chooses a part of")
                } else {
                    json_path.as_ref().map(|_| "reaches into")
                };
                self.access.indirect_reads.extend(why.map(|why| (why, name.span())));
            }
            F::Derived { alias, .. } | F::UNNEST { alias, .. } => self.record_aliases(alias.as_ref()),
            F::Table { alias, args: Some(_), .. } | F::Function { alias, .. } => self.record_aliases(alias.as_ref()),
            F::JsonTable { .. } | F::OpenJsonTable { .. } | F::XmlTable { .. } | F::TableFunction { .. } => {}
            F::NestedJoin { alias: None, .. } => {}
            F::NestedJoin { alias: Some(alias), .. } => {
                self.access.opaque_constructs.push(("an alias of a join", alias.name.span))
            }
            F::Pivot { table, .. } => self.access.opaque_constructs.push(("PIVOT", table.span())),
            F::Unpivot { table, .. } => self.access.opaque_constructs.push(("UNPIVOT", table.span())),
            F::MatchRecognize { table, .. } => self.access.opaque_constructs.push(("MATCH_RECOGNIZE", table.span())),
            F::UnpivotExpr { expression, .. } => self.access.opaque_constructs.push(("UNPIVOT", expression.span())),
            F::SemanticView { name, .. } => self.access.opaque_constructs.push(("SEMANTIC_VIEW", name.span())),
        }
        ControlFlow::Continue(())
    }
}
