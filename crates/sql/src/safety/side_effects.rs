//! Detection of side effects: everything that a statement does besides reading.
//!
//! A single walk over the AST with the parser's own visitor, which reaches every expression, query
//! and statement. Statements are checked against an allowlist: any kind that is not listed here
//! counts as a side effect.

use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, ObjectName, Query, Select, SetExpr, Spanned, Statement, TableFactor, Visit,
    Visitor,
};
use sqlparser::tokenizer::Span as TokenSpan;

/// Operation that is, or may turn out to be, more than reading.
#[derive(Debug)]
pub(crate) enum SideEffect {
    /// Statement that is not a query, by its index in the text.
    Statement(usize),
    /// Nested statement or clause that writes or sets something: its keyword and its span.
    Writes(String, TokenSpan),
    /// `FOR UPDATE`, `FOR SHARE`.
    Locks(TokenSpan),
    /// Function call: its last name part in lower case, and the schema before it.
    Call(String, Option<String>, TokenSpan),
    /// Field access `(x).f` or `x.f` by its lower-case name; in some dialects it may be the
    /// function call `f(x)`.
    FieldAccess(String, TokenSpan),
    /// Function in FROM, by its last name part in lower case.
    TableFunction(String, TokenSpan),
    /// Name in FROM without arguments, which may still be a function: all its parts.
    TableName(Vec<String>, TokenSpan),
    /// `TABLE t`; the parser provides the name only as text.
    TableCommand(String),
}

pub(crate) fn side_effects(statements: &[Statement]) -> Vec<SideEffect> {
    let mut walk = SideEffectVisitor { effects: Vec::new(), depth: 0, statement: 0 };
    for (i, statement) in statements.iter().enumerate() {
        walk.statement = i;
        let _: ControlFlow<()> = statement.visit(&mut walk);
    }
    walk.effects
}

struct SideEffectVisitor {
    effects: Vec<SideEffect>,
    /// Number of statements that enclose the current one.
    depth: usize,
    statement: usize,
}

impl SideEffectVisitor {
    fn visit_body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.visit_body(left);
                self.visit_body(right);
            }
            SetExpr::Table(table) => {
                self.effects.push(SideEffect::TableCommand(table.table_name.clone().unwrap_or_default()))
            }
            // A nested statement that writes is visited and rejected separately.
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {}
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
        }
    }
}

impl Visitor for SideEffectVisitor {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            // EXPLAIN is as harmless as the statement it explains, which is visited next.
            Statement::Query(_) | Statement::Explain { .. } => {}
            _ if self.depth == 0 => self.effects.push(SideEffect::Statement(self.statement)),
            other => self.effects.push(SideEffect::Writes(first_keyword(other), other.span())),
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _: &Statement) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if !query.locks.is_empty() {
            self.effects.push(SideEffect::Locks(query.span()));
        }
        if query.settings.is_some() {
            self.effects.push(SideEffect::Writes("SETTINGS".into(), query.span()));
        }
        self.visit_body(&query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.into.is_some() {
            self.effects.push(SideEffect::Writes("SELECT … INTO".into(), select.select_token.0.span));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) => {
                let schema = call
                    .name
                    .0
                    .len()
                    .checked_sub(2)
                    .and_then(|i| call.name.0[i].as_ident())
                    .map(|i| i.value.to_lowercase());
                self.effects.extend(last_part(&call.name).map(|name| SideEffect::Call(name, schema, call.name.span())));
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    if let AccessExpr::Dot(Expr::Identifier(field)) = access {
                        self.effects.push(SideEffect::FieldAccess(field.value.to_lowercase(), field.span));
                    }
                }
            }
            Expr::CompoundIdentifier(parts) => {
                let field = parts.last().map(|field| SideEffect::FieldAccess(field.value.to_lowercase(), field.span));
                self.effects.extend(field);
            }
            // MySQL sets session variables inside a query.
            Expr::BinaryOp { op: BinaryOperator::Assignment, .. } => {
                self.effects.push(SideEffect::Writes(":=".into(), expr.span()))
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.effects.extend(last_part(name).map(|n| SideEffect::TableFunction(n, name.span())));
            }
            TableFactor::Table { name, args: None, .. } => {
                let parts = name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.clone()).collect();
                self.effects.push(SideEffect::TableName(parts, name.span()));
            }
            TableFactor::TableFunction { expr: Expr::Function(call), .. } => {
                self.effects.extend(last_part(&call.name).map(|n| SideEffect::TableFunction(n, call.name.span())));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_lowercase())
}

/// Returns the first keyword of a statement.
fn first_keyword(statement: &Statement) -> String {
    statement.to_string().split_whitespace().next().unwrap_or("").to_ascii_uppercase()
}
