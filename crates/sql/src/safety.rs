//! What a statement would do besides reading.
//!
//! One walk over the whole tree by the parser's own visitor, which knows every place an expression, a query or a
//! statement can stand in. Statements are allowed by name; whatever is not listed here is not a question.

mod mentions;

use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, ObjectName, Query, Select, SetExpr, Spanned, Statement, TableFactor, Visit,
    Visitor,
};
use sqlparser::tokenizer::Span as Place;

pub(crate) use self::mentions::{Mentions, Star};

/// Something that is not reading, or that may turn out not to be.
#[derive(Debug)]
pub(crate) enum Hazard {
    /// A statement that is no query; its place among the statements of the text.
    Statement(usize),
    /// A statement inside another, or a clause, that writes or sets something: what it is called, and where it stands.
    Writes(String, Place),
    /// `FOR UPDATE`, `FOR SHARE`.
    Locks(Place),
    /// A function call by its last, lower-case name, and the schema before it.
    Calls(String, Option<String>, Place),
    /// A field by its lower-case name, `(x).f` or `x.f`, which in some dialects may be a function that is called with x.
    Field(String, Place),
    /// A function that stands in FROM, by its last, lower-case name.
    CallsInFrom(String, Place),
    /// A name in FROM without arguments, which may still be a function: all its parts.
    Names(Vec<String>, Place),
    /// `TABLE t`, whose name the parser gives only as text.
    BareTable(String),
}

pub(crate) fn hazards(statements: &[Statement]) -> Vec<Hazard> {
    let mut walk = Walk { found: Vec::new(), depth: 0, statement: 0 };
    for (i, statement) in statements.iter().enumerate() {
        walk.statement = i;
        let _: ControlFlow<()> = statement.visit(&mut walk);
    }
    walk.found
}

struct Walk {
    found: Vec<Hazard>,
    /// How many statements are around the present one.
    depth: usize,
    statement: usize,
}

impl Walk {
    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            SetExpr::Table(table) => self.found.push(Hazard::BareTable(table.table_name.clone().unwrap_or_default())),
            // A statement that writes is visited on its own and refused there.
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {}
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
        }
    }
}

impl Visitor for Walk {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            // EXPLAIN is as harmless as what it explains, which is visited next.
            Statement::Query(_) | Statement::Explain { .. } => {}
            _ if self.depth == 0 => self.found.push(Hazard::Statement(self.statement)),
            other => self.found.push(Hazard::Writes(verb(other), other.span())),
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
            self.found.push(Hazard::Locks(query.span()));
        }
        if query.settings.is_some() {
            self.found.push(Hazard::Writes("SETTINGS".into(), query.span()));
        }
        self.body(&query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.into.is_some() {
            self.found.push(Hazard::Writes("SELECT … INTO".into(), select.select_token.0.span));
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
                self.found.extend(last(&call.name).map(|name| Hazard::Calls(name, schema, call.name.span())));
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    if let AccessExpr::Dot(Expr::Identifier(field)) = access {
                        self.found.push(Hazard::Field(field.value.to_lowercase(), field.span));
                    }
                }
            }
            Expr::CompoundIdentifier(parts) => {
                let field = parts.last().map(|field| Hazard::Field(field.value.to_lowercase(), field.span));
                self.found.extend(field);
            }
            // MySQL sets session variables in the middle of a query.
            Expr::BinaryOp { op: BinaryOperator::Assignment, .. } => {
                self.found.push(Hazard::Writes(":=".into(), expr.span()))
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.found.extend(last(name).map(|n| Hazard::CallsInFrom(n, name.span())));
            }
            TableFactor::Table { name, args: None, .. } => {
                let parts = name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.clone()).collect();
                self.found.push(Hazard::Names(parts, name.span()));
            }
            TableFactor::TableFunction { expr: Expr::Function(call), .. } => {
                self.found.extend(last(&call.name).map(|n| Hazard::CallsInFrom(n, call.name.span())));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn last(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.to_lowercase())
}

/// The first word of a statement.
fn verb(statement: &Statement) -> String {
    statement.to_string().split_whitespace().next().unwrap_or("").to_ascii_uppercase()
}
