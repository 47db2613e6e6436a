//! Every place of a statement in which a column may be shown or tested: names, stars, and what is not followed.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, Spanned, Statement, TableAlias, TableFactor, Value,
    ValueWithSpan, Visit, Visitor,
};
use sqlparser::tokenizer::Span as Place;

/// A star that shows columns.
#[derive(Debug)]
pub(crate) enum Star {
    /// `SELECT *`, or a SELECT that needs no list; where its SELECT stands.
    All(Place),
    /// `t.*`; where it stands.
    Of(Place),
    /// Any other, such as one among the arguments of a function.
    Other(Place),
}

/// What was found. Names are only kept where they are asked for.
#[derive(Default)]
pub(crate) struct Mentions {
    /// Names, in whatever part of the query.
    pub(crate) names: Vec<Ident>,
    /// Names that functions are called by.
    pub(crate) calls: Vec<Place>,
    /// Names that are given to columns.
    pub(crate) given: Vec<Place>,
    /// Texts in double quotes, which a server may be set to take for names.
    pub(crate) quoted: Vec<(String, Place)>,
    pub(crate) stars: Vec<Star>,
    /// How many `*` of the text are accounted for: those that multiply, count rows, or are among the stars.
    pub(crate) known_stars: usize,
    /// What is written in a way that is not followed.
    pub(crate) unfollowed: Vec<(&'static str, Place)>,
    /// Tables whose columns are renamed, or that are read by an index or a part that is named; where their names stand.
    pub(crate) bent: Vec<(&'static str, Place)>,
}

impl Mentions {
    /// Walks a statement and keeps the names that are asked for.
    pub(crate) fn of(statement: &Statement, wanted: &dyn Fn(&str) -> bool) -> Self {
        let mut walk = Walk { found: Self::default(), wanted };
        let _: ControlFlow<()> = statement.visit(&mut walk);
        walk.found
    }
}

struct Walk<'w> {
    found: Mentions,
    wanted: &'w dyn Fn(&str) -> bool,
}

impl Walk<'_> {
    fn call(&mut self, call: &Function) {
        let FunctionArguments::List(list) = &call.args else {
            if let FunctionArguments::Subquery(_) = &call.args {
                self.found.calls.push(call.name.span());
            }
            return;
        };
        self.found.calls.push(call.name.span());
        let counts =
            call.name.0.last().and_then(|p| p.as_ident()).is_some_and(|n| n.value.eq_ignore_ascii_case("count"));
        let only = counts && list.args.len() == 1 && list.duplicate_treatment.is_none() && list.clauses.is_empty();
        for argument in &list.args {
            let (FunctionArg::Unnamed(arg) | FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. }) =
                argument;
            match arg {
                // How many rows there are says nothing of what stands in them.
                FunctionArgExpr::Wildcard if only => self.found.known_stars += 1,
                FunctionArgExpr::QualifiedWildcard(name) => self.star(Star::Of(name.span())),
                FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => {
                    self.star(Star::Other(call.name.span()));
                }
                FunctionArgExpr::Expr(_) => {}
            }
        }
    }

    fn star(&mut self, star: Star) {
        self.found.known_stars += 1;
        self.found.stars.push(star);
    }

    /// Names that an alias gives to the columns of what was looked at on its own.
    fn given(&mut self, alias: Option<&TableAlias>) {
        self.found.given.extend(alias.into_iter().flat_map(|a| &a.columns).map(|c| c.name.span));
    }
}

impl Visitor for Walk<'_> {
    type Break = ();

    fn pre_visit_ident(&mut self, ident: &Ident) -> ControlFlow<()> {
        if (self.wanted)(&ident.value) {
            self.found.names.push(ident.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if let Value::DoubleQuotedString(text) = &value.value
            && (self.wanted)(text)
        {
            self.found.quoted.push((text.clone(), value.span));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if !query.pipe_operators.is_empty() {
            self.found.unfollowed.push(("|>", query.span()));
        }
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.given(Some(&cte.alias));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let place = select.select_token.0.span;
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_) => self.star(Star::All(place)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    self.star(Star::Of(name.span()));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    self.star(Star::Other(expr.span()));
                }
                SelectItem::ExprWithAlias { alias, .. } => self.found.given.push(alias.span),
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAliases { .. } => {}
            }
        }
        if select.projection.is_empty() || select.flavor == SelectFlavor::FromFirstNoSelect {
            self.found.stars.push(Star::All(place));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) => self.call(call),
            Expr::BinaryOp { op: BinaryOperator::Multiply, .. } => self.found.known_stars += 1,
            // A full-text table is searched in all its columns, or in those that the searched text names.
            Expr::BinaryOp { op: BinaryOperator::Match, .. } => self.found.unfollowed.push(("MATCH", expr.span())),
            Expr::QualifiedWildcard(name, _) => self.star(Star::Of(name.span())),
            Expr::Wildcard(_) => self.star(Star::Other(expr.span())),
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
                self.found.bent.extend(why.map(|why| (why, name.span())));
            }
            F::Derived { alias, .. } | F::UNNEST { alias, .. } => self.given(alias.as_ref()),
            F::Table { alias, args: Some(_), .. } | F::Function { alias, .. } => self.given(alias.as_ref()),
            F::JsonTable { .. } | F::OpenJsonTable { .. } | F::XmlTable { .. } | F::TableFunction { .. } => {}
            F::NestedJoin { alias: None, .. } => {}
            F::NestedJoin { alias: Some(alias), .. } => {
                self.found.unfollowed.push(("an alias of a join", alias.name.span))
            }
            F::Pivot { table, .. } => self.found.unfollowed.push(("PIVOT", table.span())),
            F::Unpivot { table, .. } => self.found.unfollowed.push(("UNPIVOT", table.span())),
            F::MatchRecognize { table, .. } => self.found.unfollowed.push(("MATCH_RECOGNIZE", table.span())),
            F::UnpivotExpr { expression, .. } => self.found.unfollowed.push(("UNPIVOT", expression.span())),
            F::SemanticView { name, .. } => self.found.unfollowed.push(("SEMANTIC_VIEW", name.span())),
        }
        ControlFlow::Continue(())
    }
}
