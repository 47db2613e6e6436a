//! What a statement would do besides reading.
//!
//! One walk over the whole tree by the parser's own visitor, which knows every place an expression, a query or a
//! statement can stand in. Statements are allowed by name; whatever is not listed here is not a question.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Query, Select, SetExpr, Spanned, Statement, TableFactor, Visit, Visitor};
use sqlparser::tokenizer::Span as Place;

/// Something that is not reading.
#[derive(Debug)]
pub(crate) enum Hazard {
    /// A statement or clause that writes, defines, controls or configures; what it is called.
    Writes(String, Place),
    /// `FOR UPDATE`, `FOR SHARE`.
    Locks(Place),
    /// A function call by its last, lower-case name.
    Calls(String, Place),
    /// A name in FROM without arguments, which may still be a table function.
    Names(String, Place),
    /// `TABLE t`, whose name the parser gives only as text.
    BareTable(String),
}

pub(crate) fn hazards(statements: &[Statement]) -> Vec<Hazard> {
    let mut walk = Walk { found: Vec::new() };
    for statement in statements {
        let _: ControlFlow<()> = statement.visit(&mut walk);
    }
    walk.found
}

struct Walk {
    found: Vec<Hazard>,
}

impl Walk {
    fn call(&mut self, name: &ObjectName) {
        if let Some(last) = name.0.last().and_then(|p| p.as_ident()) {
            self.found.push(Hazard::Calls(last.value.to_lowercase(), name.span()));
        }
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            SetExpr::Table(table) => self.found.push(Hazard::BareTable(table.table_name.clone().unwrap_or_default())),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                // The statement inside is visited on its own and refused there.
            }
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
        }
    }
}

impl Visitor for Walk {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            Statement::Query(_) => {}
            Statement::Explain { statement: inner, .. } if matches!(**inner, Statement::Query(_)) => {}
            other => self.found.push(Hazard::Writes(verb(other), other.span())),
        }
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
        if let Expr::Function(call) = expr {
            self.call(&call.name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => self.call(name),
            // A table function without arguments may be written like a table.
            TableFactor::Table { name, args: None, .. } => {
                if let Some(last) = name.0.last().and_then(|p| p.as_ident()) {
                    self.found.push(Hazard::Names(last.value.to_lowercase(), name.span()));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The first words of a statement, as far as they say what it does.
fn verb(statement: &Statement) -> String {
    let text = statement.to_string();
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let first = words.first().copied().unwrap_or("").to_ascii_uppercase();
    match first.as_str() {
        "CREATE" | "ALTER" | "DROP" | "EXPLAIN" => words.join(" ").to_ascii_uppercase(),
        _ => first.trim_end_matches(|c: char| !c.is_ascii_alphabetic()).to_string(),
    }
}
