//! Parses tables from `CREATE TABLE` statements, as in a dump or a migration.

use std::ops::ControlFlow;

use sqlparser::ast::{
    AlterTableOperation, ColumnDef, ColumnOption, CommentObject, CreateTable, Expr, ForeignKeyConstraint, Ident,
    IndexColumn, ObjectName, Statement, TableConstraint, VisitMut, VisitorMut,
};
use sqlparser::parser::Parser;

use super::{Column, ForeignKey, Table};
use crate::dialect::{Dialect, IdentifierCase};
use crate::text::lexical::split_statements;

/// Error for a `CREATE TABLE` statement that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("statement {number} (`{start}…`) cannot be parsed as {dialect}: {reason}")]
pub struct DdlError {
    number: usize,
    start: String,
    dialect: &'static str,
    reason: String,
}

/// Parses all tables in a text, skipping statements that create none.
///
/// A `CREATE TABLE` that does not parse is an error, because a schema without that table would make
/// valid queries look wrong.
pub(super) fn parse_tables(text: &str, dialect: &Dialect) -> Result<Vec<Table>, DdlError> {
    // A chain of operators nests as deep as it is long, and so does the recursion that visits or
    // drops it.
    stacker::grow(crate::review::DEEP_STACK_BYTES, || parse_tables_inner(text, dialect))
}

fn parse_tables_inner(text: &str, dialect: &Dialect) -> Result<Vec<Table>, DdlError> {
    let mut tables: Vec<Table> = Vec::new();
    let mut created = 0;
    for (number, statement) in split_statements(text).into_iter().enumerate() {
        let wanted = starts_with_word(statement, "create")
            || starts_with_word(statement, "alter")
            || starts_with_word(statement, "comment");
        if !wanted {
            continue;
        }
        let creates_table = is_create_table(statement);
        if crate::parse::parsed_query::has_long_chain(statement, dialect) {
            return Err(DdlError {
                number: number + 1,
                start: statement.chars().take(40).collect(),
                dialect: dialect.name,
                reason: "one expression has too many consecutive tokens".into(),
            });
        }
        match Parser::new(dialect.grammar).try_with_sql(statement).and_then(|mut p| p.parse_statements()) {
            Ok(parsed) => parsed.into_iter().for_each(|mut s| {
                if dialect.identifier_case == IdentifierCase::LowerUnlessQuoted {
                    let _: ControlFlow<()> = s.visit(&mut LowercaseIdentifiers);
                }
                created += usize::from(matches!(s, Statement::CreateTable(_)));
                apply_statement(&mut tables, s);
            }),
            Err(error) if creates_table => {
                return Err(DdlError {
                    number: number + 1,
                    start: statement.chars().take(40).collect(),
                    dialect: dialect.name,
                    reason: error.to_string(),
                });
            }
            Err(_) => {}
        }
    }
    if created == 0 {
        return Err(DdlError {
            number: 1,
            start: text.chars().take(40).collect(),
            dialect: dialect.name,
            reason: "it contains no CREATE TABLE statement".into(),
        });
    }
    Ok(tables)
}

/// Visitor that folds unquoted identifiers to lower case.
struct LowercaseIdentifiers;

impl VisitorMut for LowercaseIdentifiers {
    type Break = ();

    fn pre_visit_ident(&mut self, ident: &mut Ident) -> ControlFlow<()> {
        if ident.quote_style.is_none() {
            ident.value = ident.value.to_lowercase();
        }
        ControlFlow::Continue(())
    }
}

fn skip_comments(statement: &str) -> &str {
    let mut rest = statement.trim_start();
    loop {
        if let Some(tail) = rest.strip_prefix("--") {
            rest = tail.split_once('\n').map_or("", |(_, r)| r).trim_start();
        } else if let Some(tail) = rest.strip_prefix("/*") {
            rest = tail.split_once("*/").map_or("", |(_, r)| r).trim_start();
        } else {
            return rest;
        }
    }
}

fn starts_with_word(statement: &str, word: &str) -> bool {
    skip_comments(statement).get(..word.len()).is_some_and(|s| s.eq_ignore_ascii_case(word))
}

fn is_create_table(statement: &str) -> bool {
    let words: Vec<String> = skip_comments(statement).split_whitespace().take(4).map(str::to_lowercase).collect();
    words.first().is_some_and(|w| w == "create")
        && words.iter().skip(1).any(|w| w == "table")
        && !words.iter().any(|w| w == "virtual")
}

fn apply_statement(tables: &mut Vec<Table>, statement: Statement) {
    match statement {
        Statement::CreateTable(create) => tables.push(convert_table(create)),
        Statement::AlterTable(alter) => {
            let name = last_part(&alter.name);
            let Some(table) = tables.iter_mut().find(|t| t.name == name) else { return };
            for operation in alter.operations {
                if let AlterTableOperation::AddConstraint { constraint, .. } = operation {
                    add_constraint(table, constraint);
                }
            }
        }
        Statement::Comment { object_type, object_name, comment, .. } => {
            apply_comment(tables, object_type, &object_name, comment)
        }
        _ => {}
    }
}

fn apply_comment(tables: &mut [Table], kind: CommentObject, name: &ObjectName, comment: Option<String>) {
    let parts: Vec<String> = name.0.iter().map(ident_text).collect();
    match (kind, parts.as_slice()) {
        (CommentObject::Table, [.., table]) => {
            if let Some(t) = tables.iter_mut().find(|t| &t.name == table) {
                t.comment = comment;
            }
        }
        (CommentObject::Column, [.., table, column]) => {
            let found = tables.iter_mut().find(|t| &t.name == table);
            if let Some(c) = found.and_then(|t| t.columns.iter_mut().find(|c| &c.name == column)) {
                c.comment = comment;
            }
        }
        _ => {}
    }
}

fn convert_table(create: CreateTable) -> Table {
    let schema = (create.name.0.len() > 1).then(|| ident_text(&create.name.0[create.name.0.len() - 2]));
    let mut table = Table { name: last_part(&create.name), schema, ..Table::default() };
    for definition in create.columns {
        add_column(&mut table, definition);
    }
    for constraint in create.constraints {
        add_constraint(&mut table, constraint);
    }
    table
}

fn add_column(table: &mut Table, definition: ColumnDef) {
    let name = definition.name.value;
    let type_name = definition.data_type.to_string();
    let mut column = Column::new(&name, if type_name == "UNSPECIFIED" { String::new() } else { type_name });
    for option in definition.options {
        match option.option {
            ColumnOption::NotNull => column.nullable = false,
            ColumnOption::PrimaryKey(_) => {
                column.nullable = false;
                table.primary_key = vec![name.clone()];
            }
            ColumnOption::Unique(_) => table.unique.push(vec![name.clone()]),
            ColumnOption::ForeignKey(key) => {
                let key = foreign_key(vec![name.clone()], key);
                table.foreign_keys.push(key);
            }
            ColumnOption::Comment(text) => column.comment = Some(text),
            _ => {}
        }
    }
    table.columns.push(column);
}

fn add_constraint(table: &mut Table, constraint: TableConstraint) {
    match constraint {
        TableConstraint::PrimaryKey(key) => table.primary_key = key_columns(&key.columns),
        TableConstraint::Unique(key) => table.unique.push(key_columns(&key.columns)),
        TableConstraint::ForeignKey(key) => {
            let own = key.columns.iter().map(|c| c.value.clone()).collect();
            let key = foreign_key(own, key);
            table.foreign_keys.push(key);
        }
        _ => {}
    }
}

fn foreign_key(columns: Vec<String>, key: ForeignKeyConstraint) -> ForeignKey {
    ForeignKey {
        columns,
        table: last_part(&key.foreign_table),
        references: key.referred_columns.into_iter().map(|c| c.value).collect(),
        inferred: false,
    }
}

fn key_columns(indexed: &[IndexColumn]) -> Vec<String> {
    indexed
        .iter()
        .filter_map(|c| match &c.column.expr {
            Expr::Identifier(ident) => Some(ident.value.clone()),
            _ => None,
        })
        .collect()
}

fn ident_text(part: &sqlparser::ast::ObjectNamePart) -> String {
    part.as_ident().map(|i| i.value.clone()).unwrap_or_default()
}

fn last_part(name: &ObjectName) -> String {
    name.0.last().map(ident_text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::dialect::{POSTGRES, SQLITE};
    use crate::schema::Schema;

    #[test]
    fn reads_keys_and_comments_from_ddl() {
        let schema = Schema::from_ddl(
            "-- a dump\nCREATE TABLE public.Customers (ID bigint NOT NULL, email text);\n\
             ALTER TABLE ONLY public.customers ADD CONSTRAINT pk PRIMARY KEY (id);\n\
             COMMENT ON COLUMN public.customers.email IS 'where bills go';\n\
             SET search_path = public; INSERT INTO customers VALUES (1, 'a;b');",
            &POSTGRES,
        )
        .unwrap();
        let table = schema.table("customers").unwrap();
        assert_eq!(table.columns[0].name, "id", "unquoted names are folded");
        assert_eq!(table.primary_key, ["id"]);
        assert_eq!(table.column("email").unwrap().comment.as_deref(), Some("where bills go"));
    }

    #[test]
    fn rejects_text_without_create_table() {
        assert!(Schema::from_ddl("SELECT 1", &SQLITE).unwrap_err().to_string().contains("no CREATE TABLE"));
        let broken = Schema::from_ddl("CREATE TABLE t (a int,, b)", &SQLITE).unwrap_err().to_string();
        assert!(broken.contains("statement 1"), "{broken}");
    }
}
