//! The functions a vendor documents, what they give and whether calling one is dangerous.
//!
//! The tables are text (`functions/*.tsv`): name, kind, what it returns, danger.

use std::collections::HashMap;

use crate::schema::Type;

/// What kind of function it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// One value for each row.
    Scalar,
    /// One value for many rows.
    Aggregate,
    /// Needs OVER.
    Window,
    /// Gives rows; stands in FROM.
    Table,
}

/// Why a function is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Danger {
    File,
    Network,
    Sleep,
    Sequence,
    Lock,
    Configuration,
    Code,
    Process,
    Write,
    Information,
}

impl Danger {
    fn from_word(word: &str) -> Option<Danger> {
        Some(match word {
            "" => return None,
            "file" => Danger::File,
            "network" => Danger::Network,
            "sleep" => Danger::Sleep,
            "sequence" => Danger::Sequence,
            "lock" => Danger::Lock,
            "configuration" => Danger::Configuration,
            "code" => Danger::Code,
            "process" => Danger::Process,
            "information" => Danger::Information,
            // Large objects, random seeds and whatever else a table names: it changes something.
            _ => Danger::Write,
        })
    }

    /// What the function does, to stand after "it".
    pub fn does(self) -> &'static str {
        match self {
            Danger::File => "reads or writes files of the server",
            Danger::Network => "reaches other machines",
            Danger::Sleep => "keeps the server waiting",
            Danger::Sequence => "moves a sequence",
            Danger::Lock => "takes locks",
            Danger::Configuration => "changes settings",
            Danger::Code => "runs code or SQL given as text",
            Danger::Process => "controls processes of the server",
            Danger::Write => "changes data or state",
            Danger::Information => "shows what belongs to other sessions or to the server",
        }
    }
}

/// One function.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Kinds it can be used as; `min` of SQLite is both scalar and aggregate.
    pub scalar: bool,
    /// It aggregates.
    pub aggregate: bool,
    /// It needs OVER.
    pub window: bool,
    /// It may stand in FROM.
    pub table: bool,
    /// What it gives.
    pub returns: Type,
    /// Why it is refused, if it is.
    pub danger: Option<Danger>,
}

/// All functions of a dialect.
pub struct FunctionTable {
    functions: HashMap<&'static str, Function>,
    /// Names that begin like this belong to an extension too large to list: `st_*`.
    families: Vec<(&'static str, Function)>,
}

impl FunctionTable {
    /// Reads one of the committed tables; lines that are not understood do not exist in them (a test sees to it).
    pub(super) fn parse(text: &'static str) -> Self {
        let mut functions: HashMap<&'static str, Function> = HashMap::with_capacity(1024);
        let mut families = Vec::new();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            let mut cells = line.split('\t');
            let (Some(name), Some(kind), Some(returns)) = (cells.next(), cells.next(), cells.next()) else { continue };
            let danger = Danger::from_word(cells.next().unwrap_or("").trim());
            let returns = type_of_word(returns);
            if let Some(prefix) = name.strip_suffix('*') {
                families.push((
                    prefix,
                    Function { scalar: true, aggregate: false, window: false, table: true, returns, danger },
                ));
                continue;
            }
            let f = functions.entry(name).or_insert(Function {
                scalar: false,
                aggregate: false,
                window: false,
                table: false,
                returns,
                danger,
            });
            f.danger = f.danger.or(danger);
            if f.returns != returns {
                f.returns = Type::Any;
            }
            match kind {
                "aggregate" => f.aggregate = true,
                "window" => f.window = true,
                "table" => f.table = true,
                _ => f.scalar = true,
            }
        }
        Self { functions, families }
    }

    /// The function of that name, which must be lower case.
    pub fn get(&self, lower: &str) -> Option<&Function> {
        self.functions.get(lower).or_else(|| self.families.iter().find(|(p, _)| lower.starts_with(p)).map(|(_, f)| f))
    }

    /// All names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }
}

fn type_of_word(word: &str) -> Type {
    match word {
        "integer" => Type::Integer,
        "number" => Type::Number,
        "text" => Type::Text,
        "date" => Type::Date,
        "time" => Type::Time,
        "timestamp" => Type::Timestamp,
        "interval" => Type::Interval,
        "boolean" => Type::Boolean,
        "json" => Type::Json,
        "binary" => Type::Binary,
        "array" => Type::Array,
        _ => Type::Any,
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::DIALECTS;

    #[test]
    fn every_table_holds_the_functions_everybody_uses() {
        for dialect in DIALECTS {
            for name in ["count", "sum", "avg", "min", "max", "lower", "abs", "coalesce", "row_number"] {
                assert!(dialect.functions.get(name).is_some(), "{} does not know {name}", dialect.name);
            }
            assert!(dialect.functions.get("count").is_some_and(|f| f.aggregate), "{}", dialect.name);
            for name in dialect.functions.names() {
                assert_eq!(name, name.to_lowercase(), "{}", dialect.name);
            }
        }
    }
}
